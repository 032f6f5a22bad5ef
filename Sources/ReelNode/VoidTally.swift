public import ReelCore

/// The records without effect that a stretch of a partition holds: how many of each kind, and a few by name.
public struct VoidTally: Sendable {
    struct Sample: Sendable {
        var seq: Seq
        var key: String
        var void: VoidRecord
    }

    /// So many are told by name.
    private static let samplesMax = 5

    private(set) var counts: [VoidRecord.Reason: Int] = [:]
    private(set) var samples: [Sample] = []

    /// None yet.
    public init() {}

    /// Whether there is none.
    public var isEmpty: Bool { counts.isEmpty }

    /// Counts the record at a seq.
    public mutating func add(_ void: VoidRecord, seq: Seq, key: Bytes) {
        counts[void.reason, default: 0] += 1
        if samples.count < Self.samplesMax {
            samples.append(Sample(seq: seq, key: Logger.excerpt(key), void: void))
        }
    }

    /// Counts seqs at which there is no record; the range may be empty.
    public mutating func add(holes: Range<Seq>) {
        guard !holes.isEmpty else { return }
        counts[.hole, default: 0] += holes.count
        guard samples.count < Self.samplesMax else { return }
        let detail = "found no record at the seqs \(holes.lowerBound) to \(holes.upperBound - 1)"
        samples.append(Sample(seq: holes.lowerBound, key: "", void: VoidRecord(.hole, detail)))
    }
}
