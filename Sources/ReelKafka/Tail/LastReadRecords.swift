internal import ReelCore
internal import ReelLog
internal import Synchronization

/// What tails that ended with an error had read last: a tail that begins where one of them stood checks that the log is
/// still the same. A topic may have been deleted and made anew meanwhile.
final class LastReadRecords: Sendable {
    private let lasts = Mutex<[Int: [Witness]]>([:])

    /// More tails of one partition are not remembered.
    private static let most = 8

    func keep(_ last: Witness, of partition: Int) {
        lasts.withLock { lasts in
            var kept = lasts[partition, default: []].filter { $0.seq != last.seq }
            kept.append(last)
            lasts[partition] = kept.suffix(Self.most)
        }
    }

    /// The record before `next`, if a tail ended there.
    func last(before next: Seq, of partition: Int) -> Witness? {
        lasts.withLock { $0[partition]?.first { $0.seq == next - 1 } }
    }
}
