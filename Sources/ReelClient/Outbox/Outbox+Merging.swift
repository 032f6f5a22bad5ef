internal import ReelCore

// The reduction of the queue: an update is merged into a waiting entry of its object.
extension Outbox {
    /// The facts that decide if an update may be merged into a waiting entry.
    struct MergeRules {
        /// The largest event that a node takes, in bytes.
        var eventMaxBytes = Int.max
        /// Returns true if the fold would give both the entry and the update the same outcome. The entry is one of the
        /// update's object, and the two can be one event.
        var sharesOutcome: (Entry, SyncChange) -> Bool = { _, _ in true }
        /// Returns true if no other device has edited the texts that the update splices after the base of the entry.
        var sharesTexts: (Entry, SyncChange) -> Bool = { _, _ in false }
    }

    /// The maximum size in bytes of an entry into which plain fields are merged.
    static let mergeMaxBytes = 32 << 10
    /// The maximum size in bytes of an entry into which operations are merged. Each of them writes the entry again, so
    /// this bounds the cost of a keystroke.
    static let operationsMaxBytes = 2 << 10
    /// The maximum number of entries of one object that an update is compared with.
    static let mergeDepth = 64

    /// Merges a plain update into the last waiting entry of its object that can carry it, and returns the number of
    /// that entry. Returns nil if there is none.
    ///
    /// The update moves before the entries of other objects, which it does not affect, and before updates of other
    /// fields of its object. A batch and an event with guards are never passed: their parts belong together, and guards
    /// read the state. Nor is an entry with an op, because its bytes are fixed.
    mutating func merge(_ update: SyncChange, base: Seq, isHeld: Bool, _ rules: MergeRules) -> Int64? {
        guard update.kind == .update, let numbers = touched[ObjectKey(update)] else { return nil }
        for number in numbers.reversed().prefix(Self.mergeDepth) {
            guard number > lastGiven, let index = index(of: number) else { return nil }
            let entry = entries[index]
            guard entry.waits == nil, let target = entry.event.single, target.guards.isEmpty, target.kind != .delete
            else { return nil }
            if rules.sharesOutcome(entry, update), let merged = merged(entry, target, update, base, rules) {
                let event = SyncEvent(merged)
                if !event.hasSplices { entries[index].base = base }
                let held = isHeld ? [0] : entry.held
                if event != entry.event || held != entry.held { put(event, held: held, at: index) }
                return number
            }
            guard target.kind == .update, target.isDisjoint(with: update) else { return nil }
        }
        return nil
    }

    private func merged(
        _ entry: Entry,
        _ target: SyncChange,
        _ update: SyncChange,
        _ base: Seq,
        _ rules: MergeRules
    ) -> SyncChange? {
        let makesObject = target.kind == .insert && target.hasRandomID && entry.held.isEmpty
        guard let merged = target.merging(update, makesObject: makesObject) else { return nil }
        let event = SyncEvent(merged)
        // The offsets of both have to count the same text. The entry keeps its base.
        if event.hasSplices, entry.base != base, !rules.sharesTexts(entry, update) { return nil }
        let maxBytes = update.operations.isEmpty ? Self.mergeMaxBytes : Self.operationsMaxBytes
        return event.encoded(base: base).count <= min(maxBytes, rules.eventMaxBytes) ? merged : nil
    }

    /// Returns true if no waiting entry writes a field of this update, and none makes or deletes its object. A field
    /// then looks as the fold below has it.
    func leaves(fieldsOf update: SyncChange) -> Bool {
        let numbers = touched[ObjectKey(update)] ?? []
        return numbers.count <= Self.mergeDepth
            && numbers.allSatisfy { number in
                guard let index = index(of: number) else { return false }
                return entries[index].event.changes.allSatisfy { change in
                    !change.isSame(update) || change.kind == .update && change.isDisjoint(with: update)
                }
            }
    }
}
