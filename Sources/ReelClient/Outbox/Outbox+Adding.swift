internal import ReelCore

// How an event comes into the queue, and what it makes superfluous there.
extension Outbox {
    /// So many objects are remembered whose insert and delete have cancelled each other.
    static let cancelledMax = 4_096

    /// Queues an event, made on a fold of `base`, and returns the number of the entry that carries it.
    /// - Parameters:
    ///   - waits: the numbers of the entries whose rejection the event waits for.
    ///   - merges: a plain update may be merged into the last entry.
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
        let knew = event.changes.indices.filter { event.changes[$0].kind != .delete && holds(event.changes[$0]) }
        var entry = Entry(number: nextNumber, event: event, base: base, knew: knew)
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

    /// True if the object was made and deleted here, and the stream will never hear of it.
    func isCancelled(_ change: Change) -> Bool { !cancelled.isEmpty && cancelled.contains(ObjectKey(change)) }

    /// The event without deletes of objects that the stream never hears of: there they would find nothing, where an
    /// object that was deleted would be left as it is.
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

    /// Drops the plain writes to an object that is now deleted, back to the first event that was handed over or is more
    /// than a plain write. True if the object was made by them, under an id that nobody else can know: then the delete
    /// has nothing to do either. An insert of any other id stays in front of the delete. The stream may hold that
    /// object, also where this device has not read it, and its tombstone has to be left in either case.
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

    /// Merges a plain update into the entry before it, if that one writes the same object and was not handed over.
    /// Only neighbours are merged, so that the order between objects stays.
    private mutating func merge(_ update: Change, base: Seq, isHeld: Bool) -> Int64? {
        guard update.kind == .update, update.operations.isEmpty, let index = entries.indices.last,
            entries[index].author == nil, var change = entries[index].event.single, change.isSame(update),
            change.kind != .delete, change.operations.isEmpty, change.guards.isEmpty
        else { return nil }
        change.fields = change.fields.merging(update.fields)
        let merged = Event(change)
        guard merged.encoded(base: base).count <= Self.mergeMaxBytes else { return nil }
        entries[index].base = base
        put(merged, knew: isHeld ? [0] : entries[index].knew, at: index)
        return entries[index].number
    }
}

extension Change {
    fileprivate func isSame(_ other: Change) -> Bool {
        model.utf8.elementsEqual(other.model.utf8) && id.utf8.elementsEqual(other.id.utf8)
    }
}
