public import ReelCore

/// The void records in a range of a partition: the number of each kind, and a few samples.
public struct VoidTally: Sendable {
    struct Sample: Sendable {
        var seq: Seq
        var key: String
        var void: VoidRecord
    }

    /// The maximum number of samples.
    private static let samplesMax = 5

    private(set) var counts: [VoidRecord.Reason: Int] = [:]
    private(set) var samples: [Sample] = []

    /// A tally without records.
    public init() {}

    /// True if there are no void records.
    public var isEmpty: Bool { counts.isEmpty }

    /// Counts a record without effect.
    ///
    /// - Parameters:
    ///   - void: The reason why the record is void.
    ///   - seq: The seq of the record.
    ///   - key: The key of the record, of which a sample shows an excerpt.
    public mutating func add(_ void: VoidRecord, seq: Seq, key: Bytes) {
        counts[void.reason, default: 0] += 1
        if samples.count < Self.samplesMax {
            samples.append(Sample(seq: seq, key: Logger.excerpt(key), void: void))
        }
    }

    /// Counts seqs without a record; the range may be empty.
    public mutating func add(holes: Range<Seq>) {
        guard !holes.isEmpty else { return }
        counts[.hole, default: 0] += holes.count
        guard samples.count < Self.samplesMax else { return }
        let detail = "found no record at the seqs \(holes.lowerBound) to \(holes.upperBound - 1)"
        samples.append(Sample(seq: holes.lowerBound, key: "", void: VoidRecord(.hole, detail)))
    }
}
