internal import ReelCore

// The objects that the app sees: the confirmed fold with the queue laid over it.
extension StreamState {
    /// A replacement of the fold below the overlay by another one.
    enum Replacement {
        /// Every object may look different.
        case whole
        /// A delta was applied, and the fold lists the objects that it has changed.
        case listed
    }

    /// The confirmed state. While the first state of a new epoch is on its way, the state of the former epoch.
    var fold: Fold? { view?.fold ?? former }

    /// Updates the overlay and the readable content with what has changed in the queue and the fold since the last
    /// call. The changed objects become news for the readers of changes.
    func follow() {
        let (replacement, isReplaced) = (replacement, replacement != nil)
        self.replacement = nil
        let writes = outbox.takeWrites()
        unwrittenWrites += writes
        // The changes are taken also if they have no reader, or their number would grow without limit.
        let changes = view?.takeChanges()
        _ = sync.handle(.folded, StreamSync.Facts(seq: seq))
        if outbox.hasUnseen, let changes, let fold {
            if isReplaced { outbox.saw(fold) } else { see(changes, of: fold) }
        }
        var changed: Set<Overlay.Key> = []
        // Single changes of a replaced fold are of no use for the overlay, which is rebuilt.
        if let changes, let fold, !isReplaced {
            changed = readable.add(changes, of: fold)
        }
        if isReplaced { readable.isReplaced = true }
        let tells = !feeds.isEmpty || !observers.isEmpty || recorder != nil
        let news = overlay.follow(
            writes,
            of: outbox,
            over: fold,
            changed: changed,
            isReplaced: isReplaced,
            isComplete: sync.isComplete,
            tells: tells
        )
        if tells {
            var (news, listed) = (news, changed)
            if replacement == .listed, let changes, let fold {
                listed = Set(changes.objects.map(fold.key(ofObject:)) + changes.forgottenObjects)
                news.formUnion(listed)
            }
            self.news.formUnion(news)
            unshown.keys.formUnion(news)
            if replacement == .listed { recorder?.note(listed, .load) }
        }
        // They are taken also if nobody records them, or their number would grow without limit.
        let withdrawn = overlay.withdrawals.takeObjects()
        recorder?.note(withdrawn, .withdrawn)
        // An observer that comes before the changes are shown has not asked for their names.
        if !tells || replacement == .whole { unshown.isReset = true }
        readable.add(&overlay)
    }

    /// Reports to the queue which of the changed objects exist now.
    private func see(_ changes: ReelCore.Changes, of fold: Fold) {
        let states = changes.objects.map { (fold.isAlive(at: $0), $0) }
        outbox.saw(states.lazy.filter(\.0).map { ObjectName(fold.key(ofObject: $0.1)) })
    }

    /// Returns the current overlay.
    func look() -> Overlay {
        follow()
        return overlay
    }

    /// The position that objects get when they are read.
    var readPosition: ReadPosition {
        ReadPosition(
            epoch: fold?.epoch,
            seq: view?.seq ?? former?.seq ?? .none,
            withdrawals: overlay.withdrawals.count
        )
    }

    /// Returns the base of an event that was made from objects read at `position`; nil: from what is folded now.
    func base(of event: SyncEvent, readAt position: ReadPosition?) throws(ReelError) -> Seq {
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
