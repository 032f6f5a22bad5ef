internal import ReelCore

// Adding an event to the queue. A delete removes the waiting writes of its object, and plain updates are merged.
extension Outbox {
    /// The number of cancelled objects (see `isCancelled`) that the queue remembers.
    static let cancelledMax = 4_096

    /// Queues an event, made on a fold of `base`, and returns the number of the entry that carries it.
    /// - Parameters:
    ///   - waits: the numbers of the entries whose rejection the event waits for.
    ///   - merges: true if a plain update may be merged into the last entry.
    ///   - holds: returns true for a change whose object is in the folded state.
    mutating func add(
        _ event: Event,
        base: Seq,
        waits: [Int64] = [],
        merges: Bool = true,
        holds: (Change) -> Bool
    ) -> Int64 {
        let event = withoutCancelled(event)
        if let change = event.single, change.guards.isEmpty {
            if change.kind == .delete, reduce(before: change, isHeld: holds(change)) { return settleAtOnce() }
            if merges, let number = merge(change, base: base, isHeld: holds(change)) { return number }
        } else if event.isBatch, event.changes.isEmpty {
            return settleAtOnce()
        }
        let held = event.changes.indices.filter { event.changes[$0].kind != .delete && holds(event.changes[$0]) }
        var entry = Entry(number: nextNumber, event: event, base: base, held: held)
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
    func isCancelled(_ change: Change) -> Bool { !cancelled.isEmpty && cancelled.contains(ObjectKey(change)) }

    /// Returns the event without its deletes of cancelled objects. The stream does not have these objects, so it would
    /// reject the event with `no_object`; a second delete of any other object is applied.
    func withoutCancelled(_ event: Event) -> Event {
        guard !cancelled.isEmpty else { return event }
        let rest = event.changes.filter { $0.kind != .delete || !$0.guards.isEmpty || !isCancelled($0) }
        return rest.count == event.changes.count ? event : Event(batch: rest)
    }

    private mutating func settleAtOnce() -> Int64 {
        defer { nextNumber += 1 }
        notify(.settled(number: nextNumber, .reduced))
        return nextNumber
    }

    /// Removes the waiting plain writes of an object before its delete is added. It stops at the first entry, from the
    /// end, that was handed over or that is no plain write.
    ///
    /// Returns true if nothing is left to delete: the removed writes made the object, under a random id that no other
    /// device can know. The insert of any other id stays in the queue. The stream may have that object although this
    /// device has not read it, and its tombstone is needed in either case.
    private mutating func reduce(before delete: Change, isHeld: Bool) -> Bool {
        guard let numbers = touched[ObjectKey(delete)] else { return false }
        var superfluous: [Int64] = []
        var wasMade = false
        for number in numbers.reversed() {
            let entry = entries[index(behind: number - 1)]
            guard entry.author == nil, let change = entry.event.single, change.guards.isEmpty,
                change.kind == .update || change.kind == .insert && (isHeld || change.hasRandomID)
            else { break }
            superfluous.append(number)
            if change.kind == .insert { wasMade = true }
        }
        for number in superfluous { remove(at: index(behind: number - 1), .reduced) }
        guard superfluous.count == numbers.count, wasMade, !isHeld else { return false }
        rememberCancelled(ObjectKey(delete))
        return true
    }

    private mutating func rememberCancelled(_ key: ObjectKey) {
        guard cancelled.insert(key).inserted else { return }
        cancelledInOrder.append(key)
        if cancelledInOrder.count > Self.cancelledMax { cancelled.remove(cancelledInOrder.removeFirst()) }
    }

    /// Merges a plain update into the last entry, if that entry writes the same object and was not handed over. Only
    /// neighbours are merged, so that the order between objects is kept.
    private mutating func merge(_ update: Change, base: Seq, isHeld: Bool) -> Int64? {
        guard update.kind == .update, update.operations.isEmpty, let index = entries.indices.last,
            entries[index].author == nil, var change = entries[index].event.single, change.isSame(update),
            change.kind != .delete, change.operations.isEmpty, change.guards.isEmpty
        else { return nil }
        change.fields = change.fields.merging(update.fields)
        let merged = Event(change)
        guard merged.encoded(base: base).count <= Self.mergeMaxBytes else { return nil }
        entries[index].base = base
        put(merged, held: isHeld ? [0] : entries[index].held, at: index)
        return entries[index].number
    }
}

extension Change {
    fileprivate func isSame(_ other: Change) -> Bool {
        model.utf8.elementsEqual(other.model.utf8) && id.utf8.elementsEqual(other.id.utf8)
    }
}
