import ReelCore

/// How far one reader is in one stream: what it holds, proven range by range, and what it still has to fetch. Pure.
struct FollowedStream {
    /// The epoch of all seqs here; nil before the first subscription.
    private(set) var epoch: Epoch?
    /// What lies at or below it was not asked for, or came as a snapshot.
    private(set) var start: Seq = .none
    private(set) var partition = 0
    /// The subscription stands on the present connection: pushed frames and `upto` go on from `proven`.
    private(set) var isLive = false
    private var covered = SeqRanges()
    private var proven: Seq = .none
    /// A fetch is on its way.
    private(set) var isFetching = false

    /// All seqs of the partition up to here are proven: of those behind `start`, nothing of the stream is missing.
    var reached: Seq { covered.contiguous(after: start) }

    /// A subscription stands. True if it is of another epoch than what was held: all begins anew.
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

    /// A frame has proven a range.
    mutating func received(from: Seq, to: Seq, isFetched: Bool) {
        if from <= to { covered.insert(from...to) }
        if !isFetched { proven = max(proven, to) }
    }

    /// The partition is proven up to here.
    mutating func upto(_ seq: Seq) {
        guard isLive, seq > proven else { return }
        covered.insert(proven + 1...seq)
        proven = seq
    }

    /// The subscription is over: the reader was too slow, or the connection is gone.
    mutating func ended() {
        isLive = false
        isFetching = false
    }

    /// The folded state as of this seq has come, in place of the events up to it.
    mutating func loaded(_ epoch: Epoch, seq: Seq) {
        if self.epoch != epoch {
            covered = SeqRanges()
            (self.epoch, start) = (epoch, seq)
        }
        start = max(start, seq)
    }

    /// The holes below what the subscription has proven, as one fetch may ask for them; empty if there are none, or
    /// they are asked for already.
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

    /// The last fetch was answered as far as it will be.
    mutating func fetched() {
        isFetching = false
    }

    /// Whether a fetch of these ranges is answered.
    func holds(_ ranges: [ClosedRange<Seq>]) -> Bool {
        ranges.allSatisfy { covered.contains($0) }
    }
}
