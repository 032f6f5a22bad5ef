internal import ReelBase
public import ReelCore
import Synchronization

/// Counts the void records of the log by reason, and logs some of them. They harm no reader, but their writer should be
/// found. From any thread.
public final class VoidWatch: Sendable {
    private let logger: Logger
    private let epoch: Epoch
    private let counters: [VoidRecord.Reason: Counter]
    private let limiter = Mutex(LineLimiter(lines: 10, windowMs: 10_000))

    /// Registers a counter for each reason.
    ///
    /// - Parameters:
    ///   - name: The name of the metric.
    ///   - epoch: The epoch of the log.
    ///   - metrics: The metrics of the node.
    ///   - logger: The logger of the node.
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

    /// Counts and logs the void records of a partition.
    public func note(_ tally: VoidTally, in partition: Int) {
        for (reason, count) in tally.counts { counters[reason]?.add(count) }
        for sample in tally.samples {
            guard let leftOut = limiter.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { continue }
            logger.warning(
                "void record",
                [
                    "epoch": "\(epoch)", "partition": "\(partition)", "seq": "\(sample.seq)",
                    "reason": sample.void.reason.rawValue, "key": sample.key, "detail": sample.void.detail,
                    "lines_left_out": "\(leftOut)",
                ]
            )
        }
    }
}
