import ReelBase
import ReelCore
import ReelNode
import Synchronization

/// Counts clients that hold a seq of this epoch beyond the log's end, and writes log lines that name some of them.
/// Either the log has lost records, or a backup of it was restored.
final class AheadWatch: Sendable {
    private let epoch: Epoch
    private let logger: Logger
    private let counter: Counter
    private let limiter = Mutex(LineLimiter(lines: 10, windowMs: 10_000))

    init(epoch: Epoch, metrics: Metrics, logger: Logger) {
        self.epoch = epoch
        self.logger = logger
        counter = metrics.counter(
            "reel_gateway_ahead_of_log_total",
            "Times that a client named a seq of this epoch beyond the log's end, which was looked up twice."
        )
    }

    /// Counts a client that named this seq of a stream, although the log ends before it.
    func note(_ seq: Seq, of stream: StreamName, in partition: Int, _ error: ReelError) {
        counter.add()
        guard let unsaid = limiter.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { return }
        logger.warning(
            "a client is ahead of the log",
            [
                "epoch": "\(epoch)", "partition": "\(partition)", "stream": "\(stream)", "seq": "\(seq)",
                "detail": error.message, "lines_left_out": "\(unsaid)",
            ]
        )
    }
}
