internal import ReelCore

// A splice that was made while the rejection of an earlier event of the same text was only expected. Sent at once, it
// would be rejected with that event, because the fold cannot tell that its author knew. So it waits without an op until
// the rejection is certain, and everything published after it waits in order.
extension Outbox {
    /// Begins to wait for the rejection of earlier entries.
    mutating func wait(_ number: Int64, for blockers: [Int64]) {
        for blocker in blockers { waiting[blocker, default: []].append(number) }
    }

    /// Takes up the waits of stored entries. An entry that is not in the queue is not waited for.
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

    /// An entry has left the queue. Those that have waited for its rejection wait no longer; where the event was not
    /// rejected after all, they have waited in vain.
    mutating func settled(_ number: Int64, _ fate: Fate) {
        guard let numbers = waiting.removeValue(forKey: number) else { return }
        let isInVain =
            switch fate {
            case .rejected, .refused, .reduced: false
            case .applied, .consumed, .unknown: true
            }
        for waiter in numbers {
            let index = index(behind: waiter - 1)
            guard index < entries.endIndex, entries[index].number == waiter else { continue }
            entries[index].waits?.removeAll { $0 == number }
            if isInVain || entries[index].waits?.isEmpty != false {
                released[waiter] = isInVain || released[waiter] == true
            }
        }
    }

    /// Puts an event into the place of an entry's, as if it had been made on `base`. `waits`: it still waits.
    mutating func place(_ event: Event, base: Seq, waits: Bool, at index: Int) {
        if !waits { entries[index].waits = nil }
        entries[index].base = base
        put(event, knew: entries[index].knew, at: index)
    }

    /// Refuses an entry that cannot be placed. What was published after it may count on its text, so an event with the
    /// same fields takes its place.
    mutating func refuseUnplaced(at index: Int, base: Seq) {
        (entries[index].waits, entries[index].base) = (nil, base)
        let error = ReelError(
            .stale,
            "found a splice in a text that changed while an earlier event of this device was on its way: "
                + "read the object again"
        )
        refuse(at: index, error)
    }
}
