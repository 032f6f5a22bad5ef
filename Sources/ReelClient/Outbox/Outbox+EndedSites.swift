internal import ReelCore

// The stream can end a site of this device: an operator retires idle sites, and the fold later forgets ended ones.
extension Outbox {
    /// The position up to which this device has folded, and the facts that show which sites the fold may have
    /// forgotten.
    struct FoldPosition: Sendable, Equatable {
        var moment: FoldedMoment
        /// The seq of the last barrier that retired sites; −1: none has.
        var retired: Seq
        var horizon: Seq

        /// The position of this fold.
        init(_ fold: Fold) {
            self.init(moment: .init(epoch: fold.epoch, seq: fold.seq), retired: fold.retired, horizon: fold.horizon)
        }

        /// A position of the given parts.
        init(moment: FoldedMoment, retired: Seq, horizon: Seq) {
            self.moment = moment
            self.retired = retired
            self.horizon = horizon
        }

        /// Returns true if the event may have been consumed under a site that the fold has forgotten.
        ///
        /// Such a site was retired after it had consumed the event, and the fold forgets a retired site only after the
        /// horizon has passed the barrier. A fold does not know which sites earlier epochs have forgotten.
        /// - Parameter moment: the position of this device's fold when it first sent the event; nil: not stored.
        func mayHaveForgotten(since moment: FoldedMoment?) -> Bool {
            guard retired > .none else { return false }
            guard let moment, moment.epoch == self.moment.epoch else { return true }
            return moment.seq < min(retired, horizon)
        }
    }

    /// The error of an event that a retired and forgotten site may or may not have consumed.
    static let forgotten = ReelError(
        .stale,
        "an operator has retired the site under which it was sent, and whether it arrived cannot be told"
    )

    /// Leaves the queue's sites that the fold has ended or forgotten. `position` must be the position of that fold.
    ///
    /// The version vector is exact for an ended site: events that it does not cover were not consumed, and never will
    /// be. For a forgotten site it contains nothing.
    mutating func leaveEndedSites(_ known: (Site) -> KnownSite?) {
        guard !entries.isEmpty || nextOp > 0 else { return }
        for left in formerSites.union([site]).subtracting(leftSites) {
            let state = known(left)
            if let state {
                // `leaveForeignSites` leaves the sites of another user: it knows whose events have their ops.
                guard state.isEnded, !state.isForeign else { continue }
            } else {
                guard isForgotten(left) else { continue }
            }
            leaveEnded(left, state)
        }
        renewFirst()
    }

    /// Gives the first event of a new site a base after the barrier, because no site begins with an older one. The
    /// offsets of a splice are rebased; a guard compares seqs and does not depend on the base.
    private mutating func renewFirst() {
        guard nextOp == 0, let position, position.retired > .none,
            let index = entries.firstIndex(where: { $0.author == nil }), entries[index].base < position.retired,
            entries[index].event.dependsOnBase, entries[index].waits == nil
        else { return }
        if entries[index].event.hasSplices {
            entries[index].waits = []
            released[entries[index].number] = false
        } else {
            entries[index].base = position.moment.seq
            write(.put(entries[index]))
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

    /// Returns true if the fold, which does not have this site, will never consume another event of it.
    private func isForgotten(_ left: Site) -> Bool {
        guard let position, position.retired > .none else { return false }
        guard let first = entries.first(where: { $0.author?.site == left }), let op = first.author?.op else {
            // Some of its ops are settled, so the site had begun.
            return left == site && nextOp > 0
        }
        return op > 0 || first.base < position.retired || position.mayHaveForgotten(since: first.firstSent)
    }
}
