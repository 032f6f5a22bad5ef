public import ReelLog
import ReelNet
import Synchronization

/// Logs the notice about the log's storage when a node starts or the notice changes, and logs when it is settled.
public final class NoticeWatch: Sendable {
    private let log: any EventLog
    private let end: GracefulShutdown
    private let logger: Logger
    private let epochHasEnded: @Sendable () -> Bool
    private let news = Mutex(NoticeNews())

    private static let pollInterval = Duration.seconds(1)

    /// Makes a watch for a node, which lasts as long as the node's loop runs.
    ///
    /// - Parameters:
    ///   - log: The log of the node.
    ///   - end: The shutdown of the node, which has its loop.
    ///   - logger: The logger of the node.
    ///   - epochHasEnded: Returns true once the node has read the end of the log's epoch. Called on the thread that
    ///     calls `start`, and then on the loop.
    public init(
        _ log: any EventLog,
        end: GracefulShutdown,
        logger: Logger,
        epochHasEnded: @escaping @Sendable () -> Bool
    ) {
        self.log = log
        self.end = end
        self.logger = logger
        self.epochHasEnded = epochHasEnded
    }

    /// Checks now, and then once a second.
    public func start() {
        look()
        end.loop.execute { [self] in
            end.loop.timer(after: Self.pollInterval, every: Self.pollInterval) { self.look() }
        }
    }

    private func look() {
        let (notice, hasEnded) = (log.notice, epochHasEnded())
        switch news.withLock({ $0.look(notice, epochHasEnded: hasEnded) }) {
        case .doubtful(let detail)?:
            logger.warning("the log may lack records", ["epoch": "\(log.epoch)", "detail": detail])
        case .accepted?:
            logger.info("the log was accepted as it is", ["epoch": "\(log.epoch)"])
        case nil:
            break
        }
    }
}

/// The decision which log line a notice of the log's storage causes.
struct NoticeNews {
    enum Line: Equatable {
        case doubtful(String)
        case accepted
    }

    private var reported: String?
    /// True if the notice was missing at the last look.
    private var isGone = false

    /// Returns the line to log at this look; nil: none. Both `reel log accept` and `reel epoch new` settle the notice.
    /// Only the first one means that an operator has accepted the log; the end of the epoch has its own log line. The
    /// node may read that end a little later than the notice disappears. Therefore a missing notice counts at the
    /// second look.
    mutating func look(_ notice: String?, epochHasEnded: Bool) -> Line? {
        if let notice {
            isGone = false
            guard notice != reported else { return nil }
            reported = notice
            return .doubtful(notice)
        }
        guard reported != nil else { return nil }
        guard isGone || epochHasEnded else {
            isGone = true
            return nil
        }
        (reported, isGone) = (nil, false)
        return epochHasEnded ? nil : .accepted
    }
}
