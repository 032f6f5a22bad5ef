internal import ReelCore

// `publish` throws the errors of events that this device knows to be without effect.
extension StreamState {
    /// Queues an event, and returns the number of the entry that carries it. Throws if this device knows that the event
    /// has no effect.
    /// - Parameters:
    ///   - base: the seq on which the event was made.
    ///   - read: the count of withdrawals at the moment when the author read the objects; nil: now.
    ///   - wallMs: the time by the wall clock.
    ///   - eventMaxBytes: the largest event that a node takes.
    func add(
        _ event: SyncEvent,
        base: Seq,
        read: Int?,
        wallMs: Int64 = 0,
        eventMaxBytes: Int = .max
    ) throws(ReelError) -> Int64 {
        let waits = try checkEffect(of: event, base: base, read: read)
        let writesNothing = event.single.map(writesNothing) ?? false
        // A check that could not read an object has no result.
        if let failure = fold?.storedObjects?.failure { throw failure }
        if writesNothing { return outbox.settleAtOnce() }
        let rules = mergeRules(eventMaxBytes)
        recorder?.note(event.changes.map { Fold.key(model: $0.model, id: $0.id) }, .own)
        return outbox.add(event, base: base, waits: waits, wallMs: wallMs, rules: rules) { change in
            fold?.holds(model: change.model, id: change.id) == true
        }
    }

    /// Predicts the fold's result for an event, and throws the code of a rejection.
    ///
    /// The prediction is based on the objects as this device shows them: the confirmed state with the queue laid over
    /// it. Two things are not predicted: an object that an incomplete state lacks, and a guard that names a seq which
    /// this device has not folded.
    /// - Parameters:
    ///   - base: the seq on which the event was made.
    ///   - read: the count of withdrawals at the moment when the author read the objects; nil: now.
    /// - Returns: the numbers of the queue's entries whose rejection the event has to wait for.
    func checkEffect(of event: SyncEvent, base: Seq, read: Int? = nil) throws(ReelError) -> [Int64] {
        if sync.need == .nextEpoch, event.dependsOnBase {
            throw ReelError(
                .epochChanged,
                "found an event that depends on seqs of a log that has ended: read again once the stream has come"
            )
        }
        if let change = event.changes.first(where: { $0.kind != .delete && outbox.isCancelled($0) }) {
            throw ReelError(refusing: change, .deleted)
        }
        let overlay = look()
        let changes = decidable(outbox.withoutCancelled(event).changes, overlay)
        switch prediction(for: event, changes, base, read, overlay) {
        case .applied(let blockers): return blockers
        case .rejected(.guard)
        where event.changes.contains { $0.guards.contains { $0.value > fold?.seq ?? .none } }: return []
        case .rejected(let code):
            func isRefused(_ changes: [SyncChange]) -> Bool {
                prediction(for: event, changes, base, read, overlay) == .rejected(code)
            }
            let index = changes.indices.first { isRefused(Array(changes[...$0])) } ?? 0
            let part = changes[index].parts(for: code).first { isRefused(changes[..<index] + [$0]) }
            throw ReelError(refusing: changes[index], code, because: part)
        }
    }

    /// Returns the changes whose effect this device can predict. In an incomplete state these are the changes of
    /// objects that the device has, or that an earlier change of the event makes.
    private func decidable(_ changes: [SyncChange], _ overlay: Overlay) -> [SyncChange] {
        if sync.isComplete { return changes }
        var made: Set<Overlay.Key> = []
        return changes.filter { change in
            let key = Fold.key(model: change.model, id: change.id)
            if change.kind == .insert { made.insert(key) }
            return made.contains(key) || overlay.knows(key, over: fold)
        }
    }

    private func prediction(
        for event: SyncEvent,
        _ changes: [SyncChange],
        _ base: Seq,
        _ read: Int?,
        _ overlay: Overlay
    ) -> Prediction {
        guard let first = changes.first else { return .applied(after: []) }
        let event = event.isBatch ? SyncEvent(batch: changes) : SyncEvent(first)
        return overlay.prediction(
            for: event,
            by: outbox.site,
            base: base,
            read: read,
            number: outbox.nextNumber,
            over: fold
        )
    }
}
