internal import ReelCore

// What `publish` throws, because this device knows already that the event would have no effect.
extension StreamState {
    /// Throws why the event would be refused or rejected, as far as that is known here. Returns the numbers of the
    /// queue's entries whose rejection the event has to wait for.
    ///
    /// The verdict is that of the fold on what this device shows: the confirmed state with the queue laid over it. What
    /// was not read yet is not held against an event: an object that is missing in a state that is not complete, a
    /// guard that names a seq which was not folded here.
    /// - Parameter read: the count of withdrawals when the author read what the event is made of; nil: now.
    func checkEffect(of event: Event, base: Seq, read: Int? = nil) throws(ReelError) -> [Int64] {
        if isFromOldEpoch, event.dependsOnBase {
            throw ReelError(
                .epochChanged,
                "found an event that depends on seqs of a log that has ended: read again once the stream has come"
            )
        }
        if let change = event.changes.first(where: { $0.kind != .delete && outbox.isCancelled($0) }) {
            throw refusal(.deleted, of: change)
        }
        let overlay = look()
        let changes = decidable(outbox.withoutCancelled(event).changes, overlay)
        switch prediction(for: event, changes, base, read, overlay) {
        case .applied(let blockers): return blockers
        case .rejected(.guard)
        where event.changes.contains { $0.guards.contains { $0.value > fold?.seq ?? .none } }: return []
        case .rejected(let code):
            let place = changes.indices.first { place in
                prediction(for: event, Array(changes[...place]), base, read, overlay) == .rejected(code)
            }
            throw refusal(code, of: changes[place ?? 0])
        }
    }

    /// The changes about which this device can know something. In a state that is not complete a missing object may be
    /// there; only what an earlier change of the event makes is sure to be.
    private func decidable(_ changes: [Change], _ overlay: Overlay) -> [Change] {
        if isComplete { return changes }
        var made: Set<Overlay.Key> = []
        return changes.filter { change in
            let key = Fold.key(model: change.model, id: change.id)
            if change.kind == .insert { made.insert(key) }
            return made.contains(key) || overlay.knows(key, over: fold)
        }
    }

    private func prediction(
        for event: Event,
        _ changes: [Change],
        _ base: Seq,
        _ read: Int?,
        _ overlay: Overlay
    ) -> Prediction {
        guard let first = changes.first else { return .applied(after: []) }
        let event = event.isBatch ? Event(batch: changes) : Event(first)
        return overlay.prediction(
            for: event,
            by: outbox.site,
            base: base,
            read: read,
            number: outbox.nextNumber,
            over: fold
        )
    }

    private func refusal(_ code: ErrorCode, of change: Change) -> ReelError {
        let name = ObjectName(change.model, change.id)
        let message =
            switch code {
            case .deleted: "found \(name), which was deleted: make a new object with another id"
            case .noObject: "found \(change.kind.rawValue) of \(name), which this stream does not have: insert it first"
            case .guard: "found a guard of \(name) that does not hold: read the object again, and decide again"
            case .type: "found an operation on \(name) that does not fit what the field holds"
            case .range: "found a splice beyond a text of \(name), or a sum beyond the largest number"
            case .stale: "found a splice in a text of \(name) that was replaced since: read the object again"
            case .tooLarge:
                "found \(name) with more than \(Limits.fields) fields or \(Limits.object) bytes, with this change"
            default: "found \(name): \(code.entry.meaning)"
            }
        return ReelError(code, message)
    }
}
