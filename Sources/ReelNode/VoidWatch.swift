public import ReelCore
import Synchronization

/// Counts the records of the log that have no effect, by reason, and names some of them in the journal: none of them
/// stops anybody, but somebody writes them.
public final class VoidWatch: Sendable {
    private let logger: Logger
    private let epoch: Epoch
    private let counters: [VoidRecord.Reason: Counter]
    private let limiter = Mutex(LineLimiter(lines: 10, windowMs: 10_000))

    /// Counts for a log of this epoch, under this name.
    public init(_ name: String, epoch: Epoch, metrics: Metrics, logger: Logger) {
        self.epoch = epoch
        self.logger = logger
        var counters: [VoidRecord.Reason: Counter] = [:]
        for reason in VoidRecord.Reason.allCases {
            counters[reason] = metrics.counter(
                name,
                "Records of the log without effect, by reason.",
                labels: ["reason": reason.rawValue]
            )
        }
        self.counters = counters
    }

    /// Counts and tells what was found in a partition.
    public func note(_ tally: VoidTally, in partition: Int) {
        for (reason, count) in tally.counts { counters[reason]?.add(count) }
        for sample in tally.samples {
            guard let unsaid = limiter.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { continue }
            logger.warning(
                "void record",
                [
                    "epoch": "\(epoch)", "partition": "\(partition)", "seq": "\(sample.seq)",
                    "reason": sample.void.reason.rawValue, "key": sample.key, "detail": sample.void.detail,
                    "lines_left_out": "\(unsaid)",
                ]
            )
        }
    }
}
