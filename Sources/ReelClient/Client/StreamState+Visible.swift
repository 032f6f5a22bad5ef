internal import ReelCore

// What the app sees: the confirmed fold with the queue laid over it. A stream that nobody reads keeps no overlay.
extension StreamState {
    /// The confirmed state: while the first one of a new epoch is on its way, that of the former.
    var fold: Fold? { view?.fold ?? former }

    /// Lets the overlay follow the queue and the fold. What has changed in them since the last time is laid, and noted
    /// as news for those who listen.
    func follow() {
        let isReplaced = isReplaced
        self.isReplaced = false
        let writes = outbox.takeWrites()
        unwrittenWrites += writes
        // Taken also where nobody wants them, or they would be ever more.
        let changes = view?.takeChanges()
        if phase == .live, seq >= sendsFrom { isComplete = true }
        if outbox.hasUnseen, let changes, let fold {
            if isReplaced { outbox.saw(fold) } else { see(changes, of: fold) }
        }
        if row != 0, let changes, let fold = view?.fold { unwrittenState.add(changes, of: fold) }
        guard var overlay = overlay.take() else { return }
        var changed: Set<Overlay.Key> = []
        // Of another fold nobody wants them one by one: all is laid anew, and readers are told to read all.
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

    /// The overlay as of now, made if this is the first look.
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

    /// The objects of a model by id, in byte order.
    func visible(_ model: String) -> [SyncObject] {
        let overlay = look()
        let own = overlay.objects(of: model).compactMap(read)
        let rest = confirmed(model) { !overlay.covers($0) }
        if own.isEmpty { return rest }
        return (rest + own).sorted { $0.name.id.utf8.lexicographicallyPrecedes($1.name.id.utf8) }
    }

    /// The same of the confirmed state, without those that are not wanted.
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

    /// The base of an event that was made of what was read there; nil: of what is folded now.
    func base(of event: Event, readAt position: ReadPosition?) throws(ReelError) -> Seq {
        // While the next epoch's state is on its way, what the queue holds is settled once that has come.
        guard let position, let view else { return seq }
        guard let epoch = position.epoch else { return .none }
        guard epoch == view.fold.epoch else {
            guard event.dependsOnBase else { return seq }
            throw ReelError(
                .epochChanged,
                "found an event made of epoch \(epoch), the stream is in \(view.fold.epoch): read and make it anew"
            )
        }
        guard (Seq.none...seq).contains(position.seq) else {
            throw ReelError(.badBase, "found base \(position.seq), expected at most \(seq), the last seq folded here")
        }
        return position.seq
    }
}
