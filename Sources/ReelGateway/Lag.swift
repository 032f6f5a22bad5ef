import ReelCore

/// How far a gateway is behind the others: for how long they have read on since one of them was where this one is not
/// yet. Time in which they stand still too does not count: then it is the log that is away.
struct Lag {
    private struct Partition {
        /// Where the others were, and when by the clock below, as long as this gateway has not been there.
        var marks: [(seq: Seq, atMs: Int64)] = []
        var others = Seq.none
        /// For how long the others have read on.
        var clockMs: Int64 = 0
        var movedMs: Int64?

        mutating func look(read: Seq, others: Seq, nowMs: Int64) {
            if others < self.others {
                // Who was ahead has gone.
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

    /// The others are heard of about every two seconds. What passes between two news of them beyond this, the log was
    /// away, or this process stood still.
    static let stepMsMax: Int64 = 5_000
    private static let marksMax = 64

    private let limitMs: Int64
    private var partitions: [Partition]
    /// Of the partition that is furthest behind.
    private(set) var ms: Int64 = 0
    /// Beyond the limit, and since then not back at half of it.
    private(set) var isTooLong = false

    /// `limitMs`: more is too long; 0: nothing is.
    init(partitions: Int, limitMs: Int64) {
        self.limitMs = limitMs
        self.partitions = [Partition](repeating: Partition(), count: partitions)
    }

    /// How far this gateway has read each partition, and how far the one of the others that has read the most; −1:
    /// nothing. About once a second.
    mutating func look(read: [Seq], others: [Seq], nowMs: Int64) {
        for index in partitions.indices {
            partitions[index].look(read: read[index], others: others[index], nowMs: nowMs)
        }
        ms = partitions.map(\.ms).max() ?? 0
        guard limitMs > 0 else { return }
        isTooLong = ms > (isTooLong ? limitMs / 2 : limitMs)
    }
}
