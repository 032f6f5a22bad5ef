import ReelCore

/// The position of one reader in one stream: the proven ranges, and the gaps to fetch. A pure state machine.
struct FollowedStream {
    /// The epoch of all seqs here; nil before the first subscription.
    private(set) var epoch: Epoch?
    /// The seq up to which events were not requested, or were replaced by a snapshot.
    private(set) var start: Seq = .none
    private(set) var partition = 0
    /// True if the subscription is active on the present connection: pushed frames and `upto` continue from `proven`.
    private(set) var isLive = false
    private var covered = SeqRanges()
    private var proven: Seq = .none
    /// True if a fetch is on its way.
    private(set) var isFetching = false

    /// The seq up to which the partition is proven: no event of the stream between `start` and this seq is missing.
    var reached: Seq { covered.contiguous(after: start) }

    /// Called when a subscription has begun. Returns true if it is of another epoch than the held ranges: they are
    /// dropped.
    mutating func subscribed(_ subscribed: ServerFrame.Subscribed) -> Bool {
        let isNew = epoch != nil && epoch != subscribed.epoch
        if epoch == nil || isNew {
            covered = SeqRanges()
            start = subscribed.after
        }
        epoch = subscribed.epoch
        partition = subscribed.partition
        proven = subscribed.after
        isLive = true
        return isNew
    }

    /// Called when a frame has proven a range.
    mutating func received(from: Seq, to: Seq, isFetched: Bool) {
        if from <= to { covered.insert(from...to) }
        if !isFetched { proven = max(proven, to) }
    }

    /// Called when the partition is proven up to `seq`.
    mutating func upto(_ seq: Seq) {
        guard isLive, seq > proven else { return }
        covered.insert(proven + 1...seq)
        proven = seq
    }

    /// Called when the subscription has ended, because the reader was too slow or the connection was lost.
    mutating func ended() {
        isLive = false
        isFetching = false
    }

    /// Called when the folded state as of this seq was loaded, in place of the events up to it.
    mutating func loaded(_ epoch: Epoch, seq: Seq) {
        if self.epoch != epoch {
            covered = SeqRanges()
            (self.epoch, start) = (epoch, seq)
        }
        start = max(start, seq)
    }

    /// Returns the gaps below what the subscription has proven, within the limits of one fetch. Returns an empty list
    /// if there are none, or if a fetch is on its way.
    mutating func fetch() -> [ClosedRange<Seq>] {
        guard isLive, !isFetching, proven > reached else { return [] }
        var ranges: [ClosedRange<Seq>] = []
        var seqs: Int64 = 0
        for gap in covered.gaps(in: start + 1...proven).ranges.prefix(ClientFrame.fetchRanges) {
            let count = min(gap.upperBound - gap.lowerBound + 1, ClientFrame.fetchSeqs - seqs)
            guard count > 0 else { break }
            ranges.append(gap.lowerBound...gap.lowerBound + count - 1)
            seqs += count
        }
        isFetching = !ranges.isEmpty
        return ranges
    }

    /// Called when the last fetch was answered completely.
    mutating func fetched() {
        isFetching = false
    }

    /// Returns true if a fetch of these ranges is answered.
    func holds(_ ranges: [ClosedRange<Seq>]) -> Bool {
        ranges.allSatisfy { covered.contains($0) }
    }
}
