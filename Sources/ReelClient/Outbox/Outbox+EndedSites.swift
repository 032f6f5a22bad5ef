internal import ReelCore

// Sites that the stream has ended: an operator retires idle ones, and every fold forgets them in time.
extension Outbox {
    /// Where the own fold is, and what it says of sites that it does not have.
    struct FoldPosition: Sendable, Equatable {
        var moment: FoldedMoment
        /// The seq of the last barrier that retired sites; −1: none has.
        var retired: Seq
        var horizon: Seq

        /// The position of this fold.
        init(_ fold: Fold) {
            self.init(moment: .init(epoch: fold.epoch, seq: fold.seq), retired: fold.retired, horizon: fold.horizon)
        }

        /// A position of these parts.
        init(moment: FoldedMoment, retired: Seq, horizon: Seq) {
            self.moment = moment
            self.retired = retired
            self.horizon = horizon
        }

        /// True if a site that the fold does not have may have consumed something that was first sent at that moment.
        ///
        /// A site that consumed it was retired at a later seq, and is forgotten only once the horizon has passed that
        /// seq. What an earlier epoch has forgotten, the present one does not say. nil: a moment that was not stored.
        func mayHaveForgotten(since moment: FoldedMoment?) -> Bool {
            guard retired > .none else { return false }
            guard let moment, moment.epoch == self.moment.epoch else { return true }
            return moment.seq < min(retired, horizon)
        }
    }

    /// The error of an event of which nobody can tell whether a retired site has consumed it.
    static let forgotten = ReelError(
        .stale,
        "an operator has retired the site under which it was sent, and whether it arrived cannot be told"
    )

    /// Leaves the sites of the queue that the fold has ended or forgotten. `position` is that of the fold.
    ///
    /// The entry of an ended site is exact: what it does not cover was not consumed, and never will be. Of a forgotten
    /// site, nobody can tell.
    mutating func leaveEndedSites(_ known: (Site) -> KnownSite?) {
        guard !entries.isEmpty || nextOp > 0 else { return }
        for left in formerSites.union([site]).subtracting(leftSites) {
            let state = known(left)
            if let state {
                // A site of another name is left by `leaveForeignSites`, which knows whose events took its ops.
                guard state.isEnded, !state.isForeign else { continue }
            } else {
                guard isForgotten(left) else { continue }
            }
            leaveEnded(left, state)
        }
        refuseWhatCannotBegin()
    }

    /// No site begins with an event that was made before sites were retired. Where that depends on what its author saw,
    /// it cannot be made again: it is refused until the queue begins with another one.
    private mutating func refuseWhatCannotBegin() {
        guard nextOp == 0, let retired = position?.retired else { return }
        let error = ReelError(.stale, "it was made before sites of the stream were retired, and its site has not begun")
        while let index = entries.firstIndex(where: { $0.author == nil }), entries[index].base < retired,
            entries[index].event.dependsOnBase
        {
            let losesText = entries[index].event.namesText
            remove(at: index, .refused(error))
            if losesText { refuseSplices() }
        }
    }

    private mutating func leaveEnded(_ left: Site, _ known: KnownSite?) {
        let isPresent = left == site
        let position = position
        let result = leave(left, known) { entry, op in
            if let known { return op > known.op ? .moved : .consumed(op == known.op ? known.seq : nil) }
            return position?.mayHaveForgotten(since: entry.firstSent) == true ? .unknown(Self.forgotten) : .moved
        }
        if result.consumed + result.moved + result.unknown > 0 { notify(.leftSite(result)) }
        if isPresent { notify(.newSite(was: left, now: site)) }
    }

    /// True if no event of this site, which the fold does not have, can be consumed any more.
    private func isForgotten(_ left: Site) -> Bool {
        guard let position, position.retired > .none else { return false }
        guard let first = entries.first(where: { $0.author?.site == left }), let op = first.author?.op else {
            // It has ops that are settled, so it had begun.
            return left == site && nextOp > 0
        }
        return op > 0 || first.base < position.retired || position.mayHaveForgotten(since: first.firstSent)
    }
}
