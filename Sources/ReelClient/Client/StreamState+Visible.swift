internal import ReelCore

// The objects that the app sees: the confirmed fold with the queue laid over it. A stream without readers keeps no
// overlay.
extension StreamState {
    /// The confirmed state. While the first state of a new epoch is on its way, the state of the former epoch.
    var fold: Fold? { view?.fold ?? former }

    /// Updates the overlay with what has changed in the queue and the fold since the last call. The changed objects
    /// become news for the readers of changes.
    func follow() {
        let isReplaced = isReplaced
        self.isReplaced = false
        let writes = outbox.takeWrites()
        unwrittenWrites += writes
        // The changes are taken also if they have no reader, or their number would grow without limit.
        let changes = view?.takeChanges()
        _ = sync.handle(.folded, StreamSync.Facts(seq: seq))
        if outbox.hasUnseen, let changes, let fold {
            if isReplaced { outbox.saw(fold) } else { see(changes, of: fold) }
        }
        if row != 0, let changes, let fold = view?.fold { unwrittenState.add(changes, of: fold) }
        guard var overlay = overlay.take() else { return }
        var changed: Set<Overlay.Key> = []
        // Single changes of a replaced fold are of no use: the overlay is rebuilt, and readers are told to read
        // everything.
        if let changes, let fold, !isReplaced, !overlay.isEmpty || !feeds.isEmpty {
            changed.formUnion(changes.objects.map(fold.key(ofObject:)))
            changed.formUnion(changes.forgottenObjects.filter(overlay.covers))
        }
        news.formUnion(overlay.follow(writes, of: outbox, over: fold, changed: changed, isReplaced: isReplaced))
        self.overlay = overlay
    }

    /// Reports to the queue which of the changed objects exist now.
    private func see(_ changes: ReelCore.Changes, of fold: Fold) {
        let states = changes.objects.map { (fold.isAlive(at: $0), $0) }
        outbox.saw(states.lazy.filter(\.0).map { ObjectName(fold.key(ofObject: $0.1)) })
    }

    /// Returns the current overlay. The first call makes it.
    func look() -> Overlay {
        follow()
        if let overlay { return overlay }
        let new = Overlay(of: outbox, over: fold, stream: name)
        overlay = new
        isReplaced = false
        return new
    }

    func visible(_ model: String, _ id: String) -> SyncObject? {
        let (overlay, key) = (look(), Fold.key(model: model, id: id))
        let state = overlay.covers(key) ? overlay.object(key) : fold?.object(key)
        return state.flatMap(read)
    }

    func confirmed(_ model: String, _ id: String) -> SyncObject? {
        fold?.object(model: model, id: id).flatMap(read)
    }

    /// Returns the objects of a model, sorted by the bytes of their ids.
    func visible(_ model: String) -> [SyncObject] {
        let overlay = look()
        let own = overlay.objects(of: model).compactMap(read)
        let rest = confirmed(model) { !overlay.covers($0) }
        if own.isEmpty { return rest }
        return (rest + own).sorted { $0.name.id.utf8.lexicographicallyPrecedes($1.name.id.utf8) }
    }

    /// Returns the confirmed objects of a model for which `isWanted` returns true, sorted by the bytes of their ids.
    func confirmed(_ model: String, where isWanted: (Overlay.Key) -> Bool = { _ in true }) -> [SyncObject] {
        guard let fold else { return [] }
        let beginning = Fold.key(model: model, id: "")
        return fold.slots().compactMap { slot in
            let key = fold.key(ofObject: slot)
            return key.starts(with: beginning) && isWanted(key) ? read(fold.object(at: slot)) : nil
        }
    }

    private func read(_ state: ObjectState) -> SyncObject? {
        guard !state.isDeleted else { return nil }
        let position = ReadPosition(
            epoch: fold?.epoch,
            seq: view?.seq ?? former?.seq ?? .none,
            withdrawals: overlay?.withdrawals.count ?? 0
        )
        return SyncObject(state, readAt: position)
    }

    /// Returns the base of an event that was made from objects read at `position`; nil: from what is folded now.
    func base(of event: Event, readAt position: ReadPosition?) throws(ReelError) -> Seq {
        // While the next epoch's state is on its way, the base does not matter: the queue is settled when that state
        // arrives.
        guard let position, let view else { return seq }
        guard let epoch = position.epoch else { return .none }
        guard epoch == view.fold.epoch else {
            guard event.dependsOnBase else { return seq }
            throw ReelError(
                .epochChanged,
                "found an event made of epoch \(epoch), the stream is in \(view.fold.epoch): read it again"
            )
        }
        guard (Seq.none...seq).contains(position.seq) else {
            throw ReelError(.badBase, "found base \(position.seq), expected at most \(seq), the last seq folded here")
        }
        return position.seq
    }
}
