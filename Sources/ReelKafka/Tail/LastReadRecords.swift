internal import ReelCore
internal import ReelLog
internal import Synchronization

/// The last records that failed tails had read. A tail that starts after one of these records checks that the log is
/// still the same, because the topic may have been deleted and created again.
final class LastReadRecords: Sendable {
    private let lasts = Mutex<[Int: [Witness]]>([:])

    /// How many records are kept per partition at most.
    private static let recordsMax = 8

    func keep(_ last: Witness, of partition: Int) {
        lasts.withLock { lasts in
            var kept = lasts[partition, default: []].filter { $0.seq != last.seq }
            kept.append(last)
            lasts[partition] = kept.suffix(Self.recordsMax)
        }
    }

    /// Returns the record before `next`, if a tail ended there.
    func last(before next: Seq, of partition: Int) -> Witness? {
        lasts.withLock { $0[partition]?.first { $0.seq == next - 1 } }
    }
}
