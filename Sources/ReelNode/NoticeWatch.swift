public import ReelLog
import ReelNet
import Synchronization

/// Tells the journal what there is to say of the log's storage when a node starts, and when that is settled.
public final class NoticeWatch: Sendable {
    private let log: any EventLog
    private let end: GracefulShutdown
    private let logger: Logger
    private let epochHasEnded: @Sendable () -> Bool
    private let news = Mutex(NoticeNews())

    private static let pause = Duration.seconds(1)

    /// A watch for a node on this log, as long as the node's loop runs. `epochHasEnded`: the node has read the end of
    /// the log's epoch.
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

    /// Looks now, and then once a second.
    public func start() {
        look()
        end.loop.execute { [self] in
            end.loop.timer(after: Self.pause, every: Self.pause) { self.look() }
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

/// What a notice of the log's storage means to the journal, look by look.
struct NoticeNews {
    enum Line: Equatable {
        case doubtful(String)
        case accepted
    }

    private var said: String?
    /// The notice was gone at the last look.
    private var isGone = false

    /// Returns the line that this look is worth. `reel epoch new` settles the notice as `reel log accept` does, and
    /// nobody has accepted the log then: the end of the epoch has a line of its own. The node may read that end a
    /// little later, so a notice that is gone counts at the second look.
    mutating func look(_ notice: String?, epochHasEnded: Bool) -> Line? {
        if let notice {
            isGone = false
            guard notice != said else { return nil }
            said = notice
            return .doubtful(notice)
        }
        guard said != nil else { return nil }
        guard isGone || epochHasEnded else {
            isGone = true
            return nil
        }
        (said, isGone) = (nil, false)
        return epochHasEnded ? nil : .accepted
    }
}
