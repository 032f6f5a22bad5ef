internal import ReelBase
internal import ReelCore

/// The queue of one stream's own events, from `publish` until the device's own fold has consumed them.
///
/// A pure state machine. Durable changes are returned as `Write`s. The caller commits them in one transaction before
/// anything that depends on them leaves the device: before `publish` returns, and before a batch is sent.
///
/// An event gets its op when it is first handed to a connection, and keeps it. (site, op) makes the event happen once,
/// even if it is sent several times. Until then the event may be merged with its neighbour or cancel out with a later
/// one. An ack means that the event is durable, not that it was consumed. So the event stays here until the fold has
/// consumed it.
struct Outbox: Sendable {
    /// One event that waits.
    struct Entry: Sendable, Equatable {
        /// The number of the entry in the queue, which is also its row in the store.
        let number: Int64
        var event: SyncEvent
        var base: Seq
        /// Site and op; nil until the event was handed over.
        var author: EventID?
        /// The seq that a gateway has reported. Not stored: after a restart the event is sent again.
        var acked: Seq?
        /// The position of the device's fold when it first handed the event to a connection, under the present site and
        /// in the present epoch. Nil: it has not, or an earlier version of the client has.
        var firstSent: FoldedMoment?
        /// The indices of the changes whose objects this device has held since the event was published.
        var held: [Int] = []
        /// The numbers of the entries whose rejection this entry waits for; nil: the entry does not wait.
        var waits: [Int64]?
        /// True if the entry was handed to a connection more than once, so that an earlier copy may still reach the
        /// log. Not stored: after a restart every entry with an op is handed over again.
        var isResent = false
        /// The last event of its site that the folded state has consumed, if that state covers the op of this entry and
        /// has not shown its content. Nil: the state does not cover the op. Not stored: the state shows it.
        var covered: CoveredOp?
        /// The time by the wall clock at which the event was added, or at which the stream was opened if an earlier run
        /// has added it. Not stored.
        var sinceMs: Int64 = 0
    }

    /// An op that a folded state covers.
    struct CoveredOp: Sendable, Equatable {
        /// The seq of the event, if the state has it.
        var seq: Seq?
    }

    /// A seq of an epoch, up to which a fold has read.
    struct FoldedMoment: Sendable, Equatable {
        var epoch: Epoch
        var seq: Seq
    }

    /// A change of the stored queue.
    enum Write: Sendable, Equatable {
        case put(Entry)
        case remove(number: Int64, Removal)
        case site(Site, next: Op)
    }

    /// The reason for which an entry leaves the queue.
    enum Removal: Sendable, Equatable {
        /// The stream has the event, and is not known to have rejected it.
        case inStream
        /// An own event that the app has just published makes the event superfluous.
        case replaced
        /// The stream does not have the event, or has rejected it, or nobody can tell.
        case withdrawn
    }

    /// A message for the app.
    enum Notice: Sendable, Equatable {
        case acked(number: Int64, seq: Seq)
        case settled(number: Int64, PublishOutcome)
        /// This device was cloned, or its site has ended. It continues as another site.
        case newSite(was: Site, now: Site)
        /// A site of the queue belongs to another user or has ended. It is never used again.
        case leftSite(LeftSite)
        /// The queue waits for something that is not caused by an event.
        case held(ReelError)
        /// The gateway waits for an op that was consumed meanwhile. Only another connection helps.
        case stuck
    }

    /// The present site, and its next op.
    var site: Site
    var nextOp: Op
    /// The earlier sites under which events of the queue were handed over.
    var formerSites: Set<Site> = []
    /// For each site, the first op that this run has given under the present user. This op and later ones were never
    /// sent under another user.
    var firstOps: [Site: Op] = [:]
    /// The sites whose events the fold has found `foreign`.
    var foreignSites: Set<Site> = []
    /// The sites that are never used again.
    var leftSites: Set<Site> = []
    /// The position of this device's fold. Set it before `folded`, `bootstrapped`, `epochChanged` and `nextBatch`.
    var position: FoldPosition?
    /// True if the stream has no room for another site, according to the fold.
    var waitsForRoom = false
    var entries = EntryList()
    /// The number of covered entries. Nothing is sent until it is known whose events have their ops.
    var coveredCount = 0
    /// No entry after this number has an op.
    var lastGiven: Int64 = 0
    var nextNumber: Int64 = 1
    var random: SeededGenerator

    // The state of the present connection.
    var sentThrough: Int64 = 0
    /// The events that were sent and not answered. Each event gets one answer, even if its entry was removed.
    var inFlight = 0
    var inFlightBytes = 0
    /// The number of restarts of sending. It is the `ref` of a publish, so that late answers to older ones are
    /// recognised.
    var generation: Int64 = 0
    /// True if an event of this generation was sent.
    var hasBegun = false
    var notBeforeMs: Int64 = 0
    var rewindsInARow = 0
    /// An op that another device has used; nothing is sent until the fold has processed it. Nil: none.
    var conflicting: EventID?
    /// True if nothing is sent until the next connection or token.
    var isHeld = false

    private(set) var writes: [Write] = []
    /// The index in `writes` of the last `put` of each entry. A later `put` of the entry replaces it.
    private var puts: [Int64: Int] = [:]
    /// The index in `writes` of the present site; nil: it has not changed.
    private var siteWrite: Int?
    private(set) var notices: [Notice] = []
    /// The numbers of the entries that name an object, in order.
    private(set) var touched: [ObjectKey: ArraySlice<Int64>] = [:]
    /// The numbers of the entries with an op, by site and op.
    private var numbers: [Site: [Op: Int64]] = [:]
    /// For each object that this device has not held: the number of changes in the queue that make or update it.
    private(set) var unseen: [ObjectKey: Int] = [:]
    /// The last objects whose insert and delete have cancelled each other, as a set and in order.
    var cancelled: Set<ObjectKey> = []
    var cancelledInOrder: ArraySlice<ObjectKey> = []
    /// The numbers of waiting entries, by the number of the entry that they wait for.
    var waiting: [Int64: [Int64]] = [:]
    /// The numbers of entries that no longer wait and are not rebased yet; true if the entry has waited in vain.
    var released: [Int64: Bool] = [:]

    /// Creates the queue of a device that is new to the stream.
    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        site = Site.random(using: &random)
        nextOp = 0
        write(.site(site, next: 0))
    }

    /// Creates the queue from its stored form. `entries`: sorted by number.
    init(site: Site, nextOp: Op, entries: [Entry], seed: UInt64) {
        random = SeededGenerator(seed: seed)
        self.site = site
        self.nextOp = nextOp
        self.entries = EntryList(entries)
        nextNumber = (entries.last?.number ?? 0) + 1
        formerSites = Set(entries.compactMap(\.author?.site))
        lastGiven = entries.last { $0.author != nil }?.number ?? 0
        for entry in entries { noteAppended(entry) }
        restoreWaits()
    }

    // MARK: Output

    /// Returns the changes that must be committed, in order, and empties the list.
    mutating func takeWrites() -> [Write] {
        if writes.isEmpty { return [] }
        defer { (writes, puts, siteWrite) = ([], [:], nil) }
        return writes
    }

    /// Returns the notices since the last call, in order, and empties the list.
    mutating func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }

    /// Adds a write. All writes are committed together, so only the last form of an entry and of the site counts.
    mutating func write(_ write: Write) {
        switch write {
        case .put(let entry):
            if let index = puts[entry.number] { return writes[index] = write }
            puts[entry.number] = writes.count
        case .remove(let number, _): puts[number] = nil
        case .site:
            if let index = siteWrite { return writes[index] = write }
            siteWrite = writes.count
        }
        writes.append(write)
    }

    mutating func notify(_ notice: Notice) {
        notices.append(notice)
    }

    // MARK: Entries

    /// Returns the index of the first entry after `number`.
    func index(behind number: Int64) -> EntryList.Index { entries.index(behind: number) }

    /// Returns the index of the entry with this number; nil if it is not in the queue.
    func index(of number: Int64) -> EntryList.Index? {
        let index = index(behind: number - 1)
        return index < entries.endIndex && entries[index].number == number ? index : nil
    }

    /// Returns the index of the entry with this site and op; nil if there is none.
    func index(of author: EventID) -> EntryList.Index? {
        numbers[author.site]?[author.op].flatMap(index(of:))
    }

    /// Removes an entry.
    ///
    /// - Parameters:
    ///   - index: the index of the entry.
    ///   - outcome: the outcome of its event.
    ///   - isReplaced: true if an own event that the app has just published makes the event superfluous.
    mutating func remove(at index: EntryList.Index, _ outcome: PublishOutcome, isReplaced: Bool = false) {
        let entry = entries[index]
        entries.remove(at: index)
        noteRemoved(entry, outcome, isReplaced: isReplaced)
        settled(entry.number, outcome)
    }

    /// Removes the entries for which there is an outcome, in one pass.
    mutating func removeAll(_ outcome: (Entry) -> PublishOutcome?) {
        var outcomes: [(Int64, PublishOutcome)] = []
        for entry in entries {
            if let outcome = outcome(entry) { outcomes.append((entry.number, outcome)) }
        }
        for (number, outcome) in outcomes {
            guard let index = index(of: number) else { continue }
            let entry = entries[index]
            entries.remove(at: index)
            noteRemoved(entry, outcome)
        }
        for (number, outcome) in outcomes where waiting[number] != nil { settled(number, outcome) }
    }

    private mutating func noteRemoved(_ entry: Entry, _ outcome: PublishOutcome, isReplaced: Bool = false) {
        touch(entry, -1)
        if let author = entry.author { forget(author) }
        if entry.covered != nil { coveredCount -= 1 }
        write(.remove(number: entry.number, outcome.isApplied ? .inStream : isReplaced ? .replaced : .withdrawn))
        notify(.settled(number: entry.number, outcome))
    }

    /// Gives an entry its op.
    mutating func name(_ author: EventID, at index: EntryList.Index) {
        entries[index].author = author
        numbers[author.site, default: [:]][author.op] = entries[index].number
    }

    private mutating func forget(_ author: EventID) {
        numbers[author.site]?[author.op] = nil
        if numbers[author.site]?.isEmpty == true { numbers[author.site] = nil }
    }

    /// Removes the op of an entry. The event was not consumed under it, and is sent as a new one of the present site.
    mutating func takeBackOp(at index: EntryList.Index) {
        if let author = entries[index].author { forget(author) }
        setCovered(nil, at: index)
        (entries[index].author, entries[index].acked, entries[index].firstSent) = (nil, nil, nil)
        entries[index].isResent = false
        write(.put(entries[index]))
    }

    /// Replaces the event of an entry, which keeps its number and its op.
    mutating func replace(at index: EntryList.Index, by event: SyncEvent) {
        put(event, held: [], at: index)
    }

    /// Replaces the event of an entry, and the indices of its held objects.
    mutating func put(_ event: SyncEvent, held: [Int], at index: EntryList.Index) {
        let (old, new) = (entries[index].event.single, event.single)
        let keepsObject =
            if let old, let new {
                held == entries[index].held && old.isSame(new) && (old.kind == .delete) == (new.kind == .delete)
            } else {
                false
            }
        if !keepsObject { touch(entries[index], -1) }
        (entries[index].event, entries[index].held) = (event, held)
        if !keepsObject { touch(entries[index], 1) }
        write(.put(entries[index]))
    }

    private mutating func touch(_ entry: Entry, _ count: Int) {
        for (place, change) in entry.event.changes.enumerated() {
            let key = ObjectKey(change)
            touched[key, default: []].set(entry.number, isIn: count > 0)
            if touched[key]?.isEmpty == true { touched[key] = nil }
            guard change.kind != .delete, !entry.held.contains(place) else { continue }
            let rest = (unseen[key] ?? 0) + count
            unseen[key] = rest > 0 ? rest : nil
        }
    }

    /// Notes that an entry was appended.
    mutating func noteAppended(_ entry: Entry) {
        touch(entry, 1)
        if let author = entry.author { numbers[author.site, default: [:]][author.op] = entry.number }
    }
}

extension ArraySlice<Int64> {
    /// Inserts a number into this sorted list, or removes it.
    fileprivate mutating func set(_ number: Int64, isIn: Bool) {
        if isIn, last ?? .min < number {
            append(number)
            return
        }
        if !isIn, first == number {
            removeFirst()
            return
        }
        let place = self.place(of: number)
        let isThere = place < endIndex && self[place] == number
        if isIn, !isThere { insert(number, at: place) }
        if !isIn, isThere { remove(at: place) }
    }

    /// Returns the index of the first number that is at least `number`.
    private func place(of number: Int64) -> Int {
        partitioningIndex { $0 < number }
    }
}

/// An object that the queue names. Two names are the same if their bytes are.
struct ObjectKey: Hashable, Sendable {
    private let bytes: [UInt8]

    init(_ change: SyncChange) { self.init(change.model, change.id) }

    init(_ name: ObjectName) { self.init(name.model, name.id) }

    private init(_ model: String, _ id: String) { bytes = Array(model.utf8) + [0] + Array(id.utf8) }
}
