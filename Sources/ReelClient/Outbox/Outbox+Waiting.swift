internal import ReelCore

// A splice can be made while this device only expects the rejection of an earlier event that names the same text. The
// fold would reject such a splice too, because it cannot tell that the author knew. So the splice waits without an op
// until the rejection is certain, and all entries after it wait as well.
extension Outbox {
    /// Registers an entry that waits for the rejection of earlier entries.
    mutating func wait(_ number: Int64, for blockers: [Int64]) {
        for blocker in blockers { waiting[blocker, default: []].append(number) }
    }

    /// Registers the stored waits. Numbers of entries that are not in the queue are dropped.
    mutating func restoreWaits() {
        for index in entries.indices {
            guard let waits = entries[index].waits else { continue }
            let number = entries[index].number
            let left = waits.filter { blocker in
                let place = self.index(behind: blocker - 1)
                return place < index && entries[place].number == blocker
            }
            entries[index].waits = left
            if left.isEmpty { released[number] = false } else { wait(number, for: left) }
        }
    }

    /// Releases the entries that waited for the rejection of an entry that has left the queue. If that event was not
    /// rejected, they have waited in vain and are refused.
    mutating func settled(_ number: Int64, _ outcome: PublishOutcome) {
        guard let numbers = waiting.removeValue(forKey: number) else { return }
        let isInVain =
            switch outcome {
            case .rejected, .failed, .superseded: false
            case .applied, .consumed, .unknown: true
            }
        for waiter in numbers {
            let index = index(behind: waiter - 1)
            // An entry that was refused while it waited for several others does not wait any more.
            guard index < entries.endIndex, entries[index].number == waiter, var waits = entries[index].waits else {
                continue
            }
            waits.removeAll { $0 == number }
            entries[index].waits = waits
            if isInVain || waits.isEmpty {
                released[waiter] = isInVain || released[waiter] == true
            }
        }
    }

    /// Replaces the event of an entry by its rebased form.
    /// - Parameters:
    ///   - base: the seq that the offsets of the new event count.
    ///   - waits: true if the entry still waits.
    mutating func place(_ event: SyncEvent, base: Seq, waits: Bool, at index: EntryList.Index) {
        if !waits { entries[index].waits = nil }
        entries[index].base = base
        put(event, held: entries[index].held, at: index)
    }

    /// Refuses an entry that cannot be rebased. A filler that names the same texts takes its place, because later
    /// splices may count on them.
    mutating func refuseUnplaced(at index: EntryList.Index, base: Seq) {
        (entries[index].waits, entries[index].base) = (nil, base)
        let error = ReelError(
            .stale,
            "found a splice in a text that changed while an earlier event of this device was on its way: "
                + "read the object again"
        )
        refuse(at: index, error)
    }
}
