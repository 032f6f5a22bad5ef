import ReelCore

/// The lag of a gateway: the time for which the others have read on since one of them was at a position that this one
/// has not reached. Time in which the others stand still, too, does not count: then the log is unavailable.
struct Lag {
    private struct Partition {
        /// The positions of the others that this gateway has not reached, with the value of `clockMs` at that time.
        var marks: [(seq: Seq, atMs: Int64)] = []
        var others = Seq.none
        /// The time in milliseconds for which the others have read on.
        var clockMs: Int64 = 0
        var movedMs: Int64?

        mutating func look(read: Seq, others: Seq, nowMs: Int64) {
            if others < self.others {
                // The gateway with the highest position has gone.
                marks.removeAll { $0.seq > others }
            } else if others > self.others {
                clockMs += min(nowMs - (movedMs ?? nowMs), Lag.stepMsMax)
                movedMs = nowMs
                if marks.count == Lag.marksMax {
                    marks = marks.indices.compactMap { $0.isMultiple(of: 2) ? marks[$0] : nil }
                }
                marks.append((others, clockMs))
            }
            self.others = others
            marks.removeFirst(marks.prefix { $0.seq <= read }.count)
        }

        var ms: Int64 { marks.first.map { clockMs - $0.atMs } ?? 0 }
    }

    /// The maximum time in milliseconds that counts between two changes of the others' positions. They announce
    /// themselves about every two seconds. In a longer gap the log was unavailable, or this process stood still.
    static let stepMsMax: Int64 = 5_000
    /// The maximum number of marks of a partition. Above it every second mark is removed.
    private static let marksMax = 64

    private let limitMs: Int64
    private var partitions: [Partition]
    /// The lag in milliseconds of the partition with the largest one.
    private(set) var ms: Int64 = 0
    /// True once the lag has exceeded the limit, until it is at most half of the limit.
    private(set) var isTooLong = false

    /// Creates a lag of zero. `limitMs` is the limit in milliseconds; 0: no lag is too long.
    init(partitions: Int, limitMs: Int64) {
        self.limitMs = limitMs
        self.partitions = [Partition](repeating: Partition(), count: partitions)
    }

    /// Updates the lag. Called about once a second.
    ///
    /// - Parameters:
    ///   - read: The last seq that this gateway has read of each partition; −1: none.
    ///   - others: The highest seq that another gateway has read of each partition; −1: none.
    ///   - nowMs: The time in milliseconds.
    mutating func look(read: [Seq], others: [Seq], nowMs: Int64) {
        for index in partitions.indices {
            partitions[index].look(read: read[index], others: others[index], nowMs: nowMs)
        }
        ms = partitions.map(\.ms).max() ?? 0
        guard limitMs > 0 else { return }
        isTooLong = ms > (isTooLong ? limitMs / 2 : limitMs)
    }
}
