internal import ReelCore

/// The visible state of the objects that own queued events change. It is the confirmed fold, with these events laid
/// over it in the order of the queue.
///
/// A pure function of both. A step recomputes only the objects whose confirmed state or events have changed, and the
/// objects that a batch binds to them. An event is laid here as long as its entry is in the queue. So it is visible
/// from `publish` until its outcome is known, also after its ack and after a restart. It is never shown together with
/// its copy from the log. An event that the fold would reject at present shows nothing.
struct Overlay: Sendable {
    /// The fold's name of an object: model, a zero byte, id.
    typealias Key = [UInt8]

    /// The base of the seqs of laid events: the event of entry n has this seq + n. It is above all seqs of any log.
    static let firstSeq: Seq = 1 << 52

    /// Returns the seq of an event in the log; nil for an event that is laid here.
    static func confirmed(_ seq: Seq) -> Seq? { seq < firstSeq ? seq : nil }

    struct Laid: Sendable {
        var value: [UInt8]
        var site: Site
        var keys: [Key]
        /// True if the entry waits until the rejection of an earlier event is certain. Lost texts do not apply to it.
        var waits: Bool
        /// The reason for which the fold would reject the event at present; nil: it would not.
        var refusal: ErrorCode?
        /// True if the event was laid before, so that the app may have read its effect.
        var wasLaid = false
        /// The objects that this device has held. The queue refuses the event if one of them no longer exists.
        var held: [Key] = []
        /// The base of an event that keeps its base: it is too old once the horizon passes this seq. Nil: the event
        /// gets a new base when it is sent.
        var fixedBase: Seq?
    }

    /// The state of an object before the last of several entries that change it, and the number of that entry. The
    /// entry may change many times while an app writes the object, and only this one entry is then laid again.
    private struct Tail {
        var number: Int64
        var before: FoldDraft.Saved
    }

    private(set) var draft: FoldDraft
    /// True if an object that the fold below lacks does not exist. In an incomplete fold it may not have arrived yet.
    private var isComplete: Bool
    /// The laid events, by the number of their entry.
    private(set) var laid: [Int64: Laid] = [:]
    /// The numbers of the entries that change an object, in order.
    private(set) var numbers: [Key: [Int64]] = [:]
    /// The tails of objects that several entries change, where only this object is changed by the last of them.
    private var tails: [Key: Tail] = [:]
    /// The numbers of the entries that depend on the horizon, by their bases.
    private var fixedBases: [Seq: Set<Int64>] = [:]
    /// The number of events that were laid since the overlay was made, each time that one was laid.
    private(set) var layCount = 0
    private var lastNumber: Int64 = 0
    /// The lost texts of the sites of these events, according to the fold below.
    private(set) var confirmedLost: [Site: LostTexts] = [:]
    /// The lost texts after all of these events. A predicted rejection counts as later than every base.
    private(set) var lost: [Site: LostTexts] = [:]
    /// The lost texts after all of these events, without those of rejections that are only predicted.
    private(set) var certainLost: [Site: LostTexts] = [:]
    /// True if a step has changed the mark for all fields of a site. That can affect entries that were not laid again.
    private var hasOtherMarks = false
    /// The site of events that have none yet.
    private(set) var site: Site
    /// The objects that the queue may show in another way since the last call of `takeTouched`.
    private var touched: Set<Key> = []
    /// The own events that were shown and then withdrawn, or withdrawn and then shown.
    var withdrawals = Withdrawals()
    private var event = ParsedEvent()

    /// Creates the overlay of all entries of a queue. `isComplete`: true if the fold has the whole stream.
    init(of outbox: Outbox, over confirmed: Fold?, stream: StreamName, isComplete: Bool = true) {
        self.init(of: outbox.entries, site: outbox.site, over: confirmed, stream: stream, isComplete: isComplete)
    }

    /// Creates the overlay of the first entries of a queue.
    ///
    /// - Parameters:
    ///   - entries: the entries.
    ///   - site: the site of entries that have none yet.
    ///   - confirmed: the fold below; nil: there is none.
    ///   - stream: the name of the stream.
    ///   - isComplete: true if the fold has the whole stream.
    init(
        of entries: some Sequence<Outbox.Entry>,
        site: Site,
        over confirmed: Fold?,
        stream: StreamName,
        isComplete: Bool = true
    ) {
        draft = FoldDraft(of: stream)
        self.site = site
        self.isComplete = isComplete
        var before = Looks(isWanted: false)
        layAll(entries, over: confirmed, &before)
    }

    /// True if no own event waits.
    var isEmpty: Bool { laid.isEmpty }

    /// Returns true if the fold would reject the event of this entry in the present state.
    func isRefused(_ number: Int64) -> Bool { laid[number]?.refusal != nil }

    /// Returns true if own events change the object, so that it must be read here and not in the fold.
    func covers(_ key: Key) -> Bool { numbers[key] != nil }

    /// Returns a covered object as the app sees it.
    func object(_ key: Key) -> ObjectState? { draft.object(key) }

    /// Returns a covered object as the app sees it, without a copy of its fields.
    func folded(_ key: Key) -> FoldedState? { draft.folded(key) }

    /// Returns the objects that own events have begun or ceased to change, or change in another way, since the last
    /// call.
    mutating func takeTouched() -> Set<Key> {
        defer { touched = [] }
        return touched
    }

    // MARK: Steps

    /// Applies the changes of the queue and of the fold below. Returns the objects that now look different.
    ///
    /// - Parameters:
    ///   - writes: the changes of the queue since the last call.
    ///   - changed: the objects that have changed in the fold since the last call.
    ///   - isReplaced: true if the fold was replaced by another one.
    ///   - isComplete: true if the fold has the whole stream.
    ///   - tells: false if nobody reads which objects look different. The result is then without meaning.
    mutating func follow(
        _ writes: [Outbox.Write],
        of outbox: Outbox,
        over confirmed: Fold?,
        changed: Set<Key>,
        isReplaced: Bool,
        isComplete: Bool = true,
        tells: Bool = true
    ) -> Set<Key> {
        var news = changed.filter { numbers[$0] == nil }
        var rules = Rules()
        let beginsAnew =
            isReplaced || isComplete != self.isComplete || outbox.site != site || !takeRules(of: confirmed, &rules)
        self.isComplete = isComplete
        guard beginsAnew || !writes.isEmpty || news.count < changed.count || !rules.isEmpty else { return news }
        var before = Looks(isWanted: tells)
        site = outbox.site
        for write in writes { noteWithdrawal(by: write) }
        if beginsAnew {
            layAll(outbox.entries, over: confirmed, &before)
        } else {
            renew(&rules, of: outbox)
            lay(writes, over: confirmed, dirty: changed.subtracting(news).union(rules.dirty), &before)
            if hasOtherMarks { layAll(outbox.entries, over: confirmed, &before) }
        }
        for (key, state) in before.states where state != (covers(key) ? object(key) : confirmed?.object(key)) {
            news.insert(key)
        }
        return news
    }

    /// Applies single writes and changes of single objects.
    private mutating func lay(
        _ writes: [Outbox.Write],
        over confirmed: Fold?,
        dirty: Set<Key>,
        _ before: inout Looks
    ) {
        var (dirty, appended) = (dirty, [Int64]())
        for write in writes {
            switch write {
            case .put(let entry):
                guard let new = taken(entry), !takesOver(new, entry.number, over: confirmed) else { continue }
                let isLast = entry.number > lastNumber
                if !isLast, dirty.isDisjoint(with: new.keys), replaceTail(entry.number, new, over: confirmed, &before) {
                    appended.append(entry.number)
                    continue
                }
                if !isLast { dirty.formUnion(remove(entry.number) + new.keys) }
                for key in new.keys where numbers[key] == nil { note(key, over: confirmed, &before) }
                add(new, entry.number, over: confirmed)
                if isLast { appended.append(entry.number) }
            case .remove(let number, _): dirty.formUnion(remove(number))
            case .site: break
            }
        }
        let affected = close(&dirty)
        if !dirty.isEmpty { resetLost(of: dirty) }
        for key in appended.flatMap({ laid[$0]?.keys ?? [] }) { note(key, over: confirmed, &before) }
        for key in dirty {
            note(key, over: confirmed, &before)
            let isCovered = numbers[key]?.isEmpty == false
            if !isCovered { numbers[key] = nil }
            tails[key] = nil
            draft.reset(key, to: isCovered ? confirmed : nil)
        }
        for number in affected.union(appended).sorted() { lay(number, over: confirmed) }
    }

    /// Adds to `dirty` all objects that batches bind to them. Returns the entries that change any of these objects.
    private func close(_ dirty: inout Set<Key>) -> Set<Int64> {
        var (affected, open) = (Set<Int64>(), Array(dirty))
        while let key = open.popLast() {
            for number in numbers[key] ?? [] where affected.insert(number).inserted {
                for other in laid[number]?.keys ?? [] where dirty.insert(other).inserted { open.append(other) }
            }
        }
        return affected
    }

    /// Lays an entry that comes after all others.
    mutating func append(_ entry: Outbox.Entry, over confirmed: Fold?) {
        guard let new = taken(entry) else { return }
        add(new, entry.number, over: confirmed)
        lay(entry.number, over: confirmed)
    }

    /// Rebuilds the overlay from all entries.
    private mutating func layAll(
        _ entries: some Sequence<Outbox.Entry>,
        over confirmed: Fold?,
        _ before: inout Looks
    ) {
        for key in numbers.keys { note(key, over: confirmed, &before) }
        for key in numbers.keys { draft.reset(key, to: nil) }
        draft.takeHorizon(of: confirmed)
        let former = laid
        (laid, numbers, tails, fixedBases) = ([:], [:], [:], [:])
        (confirmedLost, lost, certainLost) = ([:], [:], [:])
        lastNumber = 0
        for entry in entries {
            guard var new = taken(entry) else { continue }
            for key in new.keys { note(key, over: confirmed, &before) }
            if let old = former[entry.number] { (new.refusal, new.wasLaid) = (old.refusal, old.wasLaid) }
            add(new, entry.number, over: confirmed)
            lay(entry.number, over: confirmed)
        }
        hasOtherMarks = false
    }

    /// Remembers the look of an object before this step.
    private mutating func note(_ key: Key, over confirmed: Fold?, _ before: inout Looks) {
        touched.insert(key)
        before.note(key) { covers(key) ? object(key) : confirmed?.object(key) }
    }

    /// Takes over a new form of an entry that shows the same as before. Returns false if the entry must be laid again.
    private mutating func takesOver(_ new: Laid, _ number: Int64, over confirmed: Fold?) -> Bool {
        guard var old = laid[number], old.value == new.value, old.waits == new.waits else { return false }
        guard old.held == new.held || (old.held + new.held).allSatisfy({ confirmed?.holds($0) == true }) else {
            return false
        }
        note(old, number, isIn: false)
        note(new, number, isIn: true)
        (old.held, old.fixedBase) = (new.held, new.fixedBase)
        laid[number] = old
        return true
    }

    /// Replaces the last entry of an object, and resets the object to its state before that entry. The entry must be
    /// laid then. Returns false, and changes nothing, if that is not enough.
    private mutating func replaceTail(
        _ number: Int64,
        _ new: Laid,
        over confirmed: Fold?,
        _ before: inout Looks
    ) -> Bool {
        guard new.keys.count == 1, let key = new.keys.first, let tail = tails[key], tail.number == number,
            let old = laid[number], old.refusal == nil, !old.waits, !new.waits, old.keys == new.keys
        else { return false }
        note(key, over: confirmed, &before)
        draft.restore(key, to: tail.before)
        note(old, number, isIn: false)
        note(new, number, isIn: true)
        laid[number] = new
        laid[number]?.wasLaid = old.wasLaid
        return true
    }

    private mutating func note(_ entry: Laid, _ number: Int64, isIn: Bool) {
        guard let base = entry.fixedBase else { return }
        if isIn { fixedBases[base, default: []].insert(number) } else { fixedBases[base]?.remove(number) }
        if fixedBases[base]?.isEmpty == true { fixedBases[base] = nil }
    }

    // MARK: Entries

    /// Returns the event of an entry, encoded for the site that has sent it or will send it; nil: it is not laid. Only
    /// splices and guards depend on their base. Any other event gets the newest base, unless it was handed over and has
    /// become too old.
    private mutating func taken(_ entry: Outbox.Entry) -> Laid? {
        // The fold has the effect of a covered event, or an event of another device.
        if entry.covered != nil { return nil }
        let isTooOld = entry.author != nil && entry.base < draft.horizon
        let base = isTooOld || entry.event.dependsOnBase ? entry.base : Self.firstSeq - 1
        let site = entry.author?.site ?? site
        let value = entry.event.encoded(base: base, author: EventID(site: site, op: 0))
        return value.withUnsafeBytes { bytes in
            guard (try? event.parse(bytes)) != nil else { return nil }
            let keys = event.parts.map { event.key(of: $0, bytes) }
            let held = entry.author == nil ? entry.held.filter(keys.indices.contains).map { keys[$0] } : []
            var laid = Laid(
                value: value,
                site: site,
                keys: keys.count < 2 ? keys : Array(Set(keys)),
                waits: entry.waits != nil,
                held: held
            )
            if entry.author != nil || entry.event.dependsOnBase { laid.fixedBase = entry.base }
            return laid
        }
    }

    private mutating func add(_ new: Laid, _ number: Int64, over confirmed: Fold?) {
        laid[number] = new
        note(new, number, isIn: true)
        lastNumber = max(lastNumber, number)
        if confirmedLost[new.site] == nil {
            confirmedLost[new.site] = confirmed?.site(new.site)?.lost ?? LostTexts()
            lost[new.site] = confirmedLost[new.site]
            certainLost[new.site] = confirmedLost[new.site]
        }
        for key in new.keys {
            if numbers[key] == nil { draft.reset(key, to: confirmed) }
            tails[key] = nil
            let place = numbers[key]?.lastIndex { $0 < number }.map { $0 + 1 } ?? 0
            numbers[key, default: []].insert(number, at: place)
        }
    }

    /// Removes an entry. Its objects must be laid again.
    private mutating func remove(_ number: Int64) -> [Key] {
        guard let old = laid.removeValue(forKey: number) else { return [] }
        note(old, number, isIn: false)
        for key in old.keys { numbers[key]?.removeAll { $0 == number } }
        return old.keys
    }

    /// Takes over the lost texts of a site. Returns false if the site may have too many now, so that one mark for all
    /// fields replaces them.
    mutating func takeLost(_ present: LostTexts, of site: Site, _ rules: inout Rules) -> Bool {
        let former = confirmedLost[site]?.fields ?? []
        let changed = present.fields.filter { !former.contains($0) } + former.filter { !present.fields.contains($0) }
        let keys = Set(changed.map(\.objectKey))
        confirmedLost[site] = present
        resetLost(of: keys)
        rules.dirty.formUnion(keys.filter(covers))
        return lost[site].map { $0.fields.count <= Limits.lostPerSite } ?? true
    }

    /// Takes over the horizon. Returns the numbers of the entries that have become too old.
    mutating func takeHorizon(of confirmed: Fold?) -> [Int64] {
        let former = draft.horizon
        draft.takeHorizon(of: confirmed)
        return fixedBases.filter { former <= $0.key && $0.key < draft.horizon }.flatMap(\.value)
    }

    /// Encodes the entries again that have become too old. Their objects must be laid again.
    private mutating func renew(_ rules: inout Rules, of outbox: Outbox) {
        for number in rules.old {
            guard let old = laid[number], let index = outbox.index(of: number),
                var new = taken(outbox.entries[index])
            else { continue }
            rules.dirty.formUnion(old.keys + new.keys)
            guard old.keys == new.keys else { continue }
            (new.refusal, new.wasLaid) = (old.refusal, old.wasLaid)
            note(old, number, isIn: false)
            note(new, number, isIn: true)
            laid[number] = new
        }
    }

    /// Resets the lost texts of these objects to those of the fold below, for all sites, because a removed entry may
    /// have left some.
    private mutating func resetLost(of keys: Set<Key>) {
        for site in Array(lost.keys) {
            guard let confirmed = confirmedLost[site] else { continue }
            if lost[site]?.all != confirmed.all { hasOtherMarks = true }
            lost[site]?.reset(to: confirmed, ofObjects: keys)
            certainLost[site]?.reset(to: confirmed, ofObjects: keys)
        }
    }

    private mutating func lay(_ number: Int64, over confirmed: Fold?) {
        guard var entry = laid[number], var lost = lost[entry.site] else { return }
        let (all, before, seq) = (lost.all, entry.refusal, Self.firstSeq + number)
        layCount += 1
        if entry.keys.count == 1, let key = entry.keys.first, let own = numbers[key], own.count > 1, own.last == number
        {
            tails[key] = Tail(number: number, before: draft.saved(key))
        }
        // The queue refuses an event if an object that this device has held no longer exists.
        let gone = isComplete ? entry.held.filter { confirmed?.holds($0) == false } : []
        entry.value.withUnsafeBytes { value in
            guard (try? event.parse(value)) != nil else { return }
            guard gone.isEmpty else {
                entry.refusal = .deleted
                // If the event names texts of other objects, a filler that names the same texts is sent.
                let isCounted = entry.texts.contains { text in
                    !gone.contains { text.starts(with: $0 + [0]) }
                }
                if isCounted { noteFiller(of: entry, at: seq, in: &lost) }
                return
            }
            entry.refusal = draft.lay(event, value, seq: seq, lost: entry.waits ? LostTexts() : lost)
            // A splice that has no place when its wait ends is refused as well.
            if entry.waits, entry.refusal != nil { return noteFiller(of: entry, at: seq, in: &lost) }
            lost.note(entry.refusal, of: event, value, at: seq, horizon: draft.horizon)
            if entry.refusal == nil {
                certainLost[entry.site]?.note(nil, of: event, value, at: seq, horizon: draft.horizon)
            }
        }
        if lost.all != all { hasOtherMarks = true }
        self.lost[entry.site] = lost
        if entry.wasLaid, (before == nil) != (entry.refusal == nil) {
            withdrawals.note(entry.texts, of: entry.keys)
        }
        entry.wasLaid = true
        laid[number] = entry
    }

    /// Notes that a filler replaces an entry. Its texts are lost at its own seq, regardless of the bases of the refused
    /// event's splices.
    private mutating func noteFiller(of entry: Laid, at seq: Seq, in lost: inout LostTexts) {
        var base = Seq.none
        let sent = entry.value.withUnsafeBytes { SyncEvent(encoded: $0, base: &base) }
        let author = EventID(site: entry.site, op: 0)
        sent?.filler.encoded(base: Self.firstSeq - 1, author: author).withUnsafeBytes { filler in
            guard (try? event.parse(filler)) != nil else { return }
            lost.note(.deleted, of: event, filler, at: seq, horizon: draft.horizon)
        }
    }

    /// Notes the withdrawal of an entry that leaves the queue with another outcome than the predicted one, or whose
    /// event is replaced by a filler.
    private mutating func noteWithdrawal(by write: Outbox.Write) {
        switch write {
        case .remove(let number, let removal):
            guard let old = laid[number], (old.refusal == nil) != (removal == .inStream) else { return }
            // What the app sees then, its new event has made.
            withdrawals.note(old.texts, of: removal == .replaced ? [] : old.keys)
        case .put(let entry):
            guard entry.event.isFiller, let old = laid[entry.number], old.refusal == nil else { return }
            withdrawals.note(old.texts, of: old.keys)
        case .site: break
        }
    }
}
