internal import ReelCore

// Adding an event to the queue. A delete removes the waiting writes of its object, and updates are merged.
extension Outbox {
    /// The number of cancelled objects (see `isCancelled`) that the queue remembers.
    static let cancelledMax = 4_096

    /// Queues an event, made on a fold of `base`, and returns the number of the entry that carries it.
    /// - Parameters:
    ///   - waits: the numbers of the entries whose rejection the event waits for.
    ///   - wallMs: the time by the wall clock.
    ///   - rules: the facts that decide if an update may be merged; nil: it may not.
    ///   - holds: returns true for a change whose object is in the folded state.
    mutating func add(
        _ event: SyncEvent,
        base: Seq,
        waits: [Int64] = [],
        wallMs: Int64 = 0,
        rules: MergeRules? = MergeRules(),
        holds: (SyncChange) -> Bool
    ) -> Int64 {
        let event = withoutCancelled(event)
        if let change = event.single, change.guards.isEmpty {
            if change.kind == .delete, reduce(before: change, isHeld: holds(change)) { return settleAtOnce() }
            if waits.isEmpty, let rules, let number = merge(change, base: base, isHeld: holds(change), rules) {
                return number
            }
        } else if event.isBatch, event.changes.isEmpty {
            return settleAtOnce()
        }
        let held = event.changes.indices.filter { event.changes[$0].kind != .delete && holds(event.changes[$0]) }
        var entry = Entry(number: nextNumber, event: event, base: base, held: held, sinceMs: wallMs)
        if !waits.isEmpty {
            entry.waits = waits
            wait(entry.number, for: waits)
        }
        nextNumber += 1
        entries.append(entry)
        noteAppended(entry)
        write(.put(entry))
        return entry.number
    }

    /// Returns true if the insert and the delete of the object have cancelled each other, so that neither was sent.
    func isCancelled(_ change: SyncChange) -> Bool { !cancelled.isEmpty && cancelled.contains(ObjectKey(change)) }

    /// Returns the event without its deletes of cancelled objects. The stream does not have these objects, so it would
    /// reject the event with `no_object`; a second delete of any other object is applied.
    func withoutCancelled(_ event: SyncEvent) -> SyncEvent {
        guard !cancelled.isEmpty else { return event }
        let rest = event.changes.filter { $0.kind != .delete || !$0.guards.isEmpty || !isCancelled($0) }
        return rest.count == event.changes.count ? event : SyncEvent(batch: rest)
    }

    /// Settles an event without effect, which is not queued, as `superseded`. Returns its number.
    mutating func settleAtOnce() -> Int64 {
        defer { nextNumber += 1 }
        notify(.settled(number: nextNumber, .superseded))
        return nextNumber
    }

    /// Removes the waiting plain writes of an object before its delete is added. It stops at the first entry, from the
    /// end, that was handed over or that is no plain write.
    ///
    /// Returns true if nothing is left to delete: the removed writes made the object, under a random id that no other
    /// device can know. The insert of any other id stays in the queue. The stream may have that object although this
    /// device has not read it, and its tombstone is needed in either case.
    private mutating func reduce(before delete: SyncChange, isHeld: Bool) -> Bool {
        guard let numbers = touched[ObjectKey(delete)] else { return false }
        var superfluous: [Int64] = []
        var wasMade = false
        for number in numbers.reversed() {
            guard let index = index(of: number) else { break }
            let entry = entries[index]
            guard entry.author == nil, let change = entry.event.single, change.guards.isEmpty,
                change.kind == .update || change.kind == .insert && (isHeld || change.hasRandomID)
            else { break }
            superfluous.append(number)
            if change.kind == .insert { wasMade = true }
        }
        for number in superfluous {
            if let index = index(of: number) { remove(at: index, .superseded, isReplaced: true) }
        }
        guard superfluous.count == numbers.count, wasMade, !isHeld else { return false }
        rememberCancelled(ObjectKey(delete))
        return true
    }

    private mutating func rememberCancelled(_ key: ObjectKey) {
        guard cancelled.insert(key).inserted else { return }
        cancelledInOrder.append(key)
        if cancelledInOrder.count > Self.cancelledMax { cancelled.remove(cancelledInOrder.removeFirst()) }
    }
}
