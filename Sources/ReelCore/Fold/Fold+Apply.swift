extension Fold {
    /// Folds the event at `seq`.
    ///
    /// - Parameters:
    ///   - event: the event, which belongs to the stream of the fold.
    ///   - value: the record's value that `event` was parsed from.
    ///   - seq: the seq of the event. It is above `self.seq`.
    public mutating func apply(_ event: ParsedEvent, _ value: Bytes, seq: Seq) -> Outcome {
        defer { advance(to: seq) }
        let by = event.by.map { value[$0] }
        let index: Dictionary<Site, SiteState>.Index
        var lost = LostTexts()
        if let known = sites.index(forKey: event.site) {
            // Read in one access, because each access copies the state of the site.
            let state = sites.values[known]
            if !state.isWritten(by: by) { return .foreign }
            if event.op <= state.op { return .duplicate }
            if event.op > state.op + 1 || state.end != .none { return .gap }
            (index, lost) = (known, state.lost)
        } else {
            if event.op != 0 { return .gap }
            if event.base < horizon || event.base < retired { return .stale }
            if !hasRoomForSite, !event.site.isOneRequest { return .tooManySites }
            index = begin(event.site, by: by)
        }
        touch(site: event.site, at: index)
        sites.values[index].op = event.op
        sites.values[index].seq = seq
        if event.last { end(event.site, at: index, seq: seq) }
        let refusal = change(event, value, seq: seq, lost: lost)
        if refusal == nil ? lost.count > 0 : event.namesText {
            let others = lostCount - lost.count
            lost.note(refusal, of: event, value, at: seq, horizon: horizon, others: others)
            setLost(lost, of: event.site, at: index)
        }
        consume(seq)
        return refusal.map(Outcome.rejected) ?? .applied
    }

    /// Adds a site that writes to this stream for the first time.
    mutating func begin(_ site: Site, by: Bytes?) -> Dictionary<Site, SiteState>.Index {
        var state = SiteState()
        state.by = by.map { Array($0) }
        sites[site] = state
        listUnhashed(site: site)
        // `begin` has just inserted the site.
        return sites.index(forKey: site)!
    }

    private mutating func consume(_ seq: Seq) {
        consumed += 1
        guard consumed % Limits.markEvery == 0 else { return }
        if marks.count == Limits.marks { marks.removeFirst() }
        marks.append(seq)
        forget()
    }

    /// Applies all parts of the event or none. Returns the reason if it applies none.
    mutating func change(_ event: ParsedEvent, _ value: Bytes, seq: Seq, lost: LostTexts) -> ErrorCode? {
        if event.base >= seq { return .badBase }
        var undo = Undo()
        var heavy: [Int] = []
        var set = CanonicalSet()
        for part in event.parts {
            let context = PartContext(
                mark: TextMark(seq: seq, site: event.site),
                base: event.base,
                horizon: horizon,
                slot: locate(model: value[part.model], id: value[part.id])
            )
            var refusal = check(part, of: event, value, context, lost, before: undo)
            if refusal == nil {
                let keepsUndo = event.isBatch || mayOverflow(part, value, slot: context.slot)
                refusal = apply(part, of: event, value, context, undo: &undo, keepsUndo: keepsUndo, set: &set)
            }
            if let refusal {
                restore(undo)
                return refusal
            }
            if let slot = context.slot, objects[slot].weight > Limits.history { heavy.append(slot) }
        }
        let viewer = TextViewer(site: event.site, base: event.base)
        for slot in heavy { objects[slot].flatten(behind: viewer, above: horizon) }
        return nil
    }

    /// True if the part could grow its object beyond the limits. All bytes that it writes are in the record, except the
    /// sums of `inc`. A sum is at most 16 bytes longer than its operation.
    private func mayOverflow(_ part: ParsedEvent.Part, _ value: Bytes, slot: Int?) -> Bool {
        let (size, fields) = slot.map { (objects[$0].size, objects[$0].fields.count) } ?? (2, 0)
        return size + value.count + 16 * part.ops.count > Limits.object
            || fields + part.fields.count + part.ops.count > Limits.fields
    }

    private mutating func restore(_ undo: Undo) {
        for (slot, before) in undo.saved.reversed() {
            if let before { objects[slot] = before } else { forget(object: slot) }
        }
    }
}

/// The values that the checks of a part compare with.
struct PartContext {
    /// The event's own mark.
    let mark: TextMark
    let base: Seq
    let horizon: Seq
    /// The slot of the part's object or tombstone; nil if there is neither.
    let slot: Int?

    var viewer: TextViewer { TextViewer(site: mark.site, base: base) }
}

/// The objects of an event as they were before it; nil for an object that did not exist.
struct Undo {
    var saved: [(slot: Int, before: FoldedObject?)] = []

    /// Returns the object as it was before the event, if a part of the event has already changed it; otherwise nil.
    func before(_ slot: Int) -> FoldedObject?? {
        saved.first { $0.slot == slot }?.before
    }

    mutating func save(_ before: FoldedObject?, at slot: Int) {
        if !saved.contains(where: { $0.slot == slot }) { saved.append((slot, before)) }
    }
}
