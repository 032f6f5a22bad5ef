import ReelCore
import ReelLog
import Synchronization

/// Where in each partition no record is without effect, as far as that is known. Records never change: an event that
/// was taken apart once to see that it is one needs not be again, which is a quarter of a replay's work.
final class ValidatedRanges: Sendable {
    private static let rangesMax = 1_024

    private let partitions: Mutex<[SeqRanges]>

    /// For a log of so many partitions.
    init(partitions: Int) {
        self.partitions = Mutex([SeqRanges](repeating: SeqRanges(), count: partitions))
    }

    /// Whether every record of these seqs is an event or a barrier.
    func contains(_ seqs: Range<Seq>, of partition: Int) -> Bool {
        !seqs.isEmpty && partitions.withLock { $0[partition].contains(ClosedRange(seqs)) }
    }

    /// Every record of these seqs is an event or a barrier.
    func add(_ seqs: Range<Seq>, of partition: Int) {
        guard !seqs.isEmpty else { return }
        partitions.withLock { partitions in
            partitions[partition].insert(ClosedRange(seqs))
            // Where this is so torn that it is costly to keep, it is learned anew.
            if partitions[partition].ranges.count > Self.rangesMax { partitions[partition] = SeqRanges() }
        }
    }
}
