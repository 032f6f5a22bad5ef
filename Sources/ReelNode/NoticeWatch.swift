public import ReelLog
import ReelNet
import Synchronization

/// Tells the journal what there is to say of the log's storage when a node starts, and when that is settled.
public final class NoticeWatch: Sendable {
    private let log: any EventLog
    private let end: NodeEnd
    private let journal: Journal
    private let said = Mutex<String?>(nil)

    private static let pause = Duration.seconds(1)

    /// A watch for a node on this log, as long as the node's loop runs.
    public init(_ log: any EventLog, end: NodeEnd, journal: Journal) {
        self.log = log
        self.end = end
        self.journal = journal
    }

    /// Looks now, and then once a second.
    public func start() {
        look()
        end.loop.execute { [self] in
            end.loop.timer(after: Self.pause, every: Self.pause) { self.look() }
        }
    }

    private func look() {
        let notice = log.notice
        let isNews = said.withLock { said in
            defer { said = notice }
            return said != notice
        }
        guard isNews else { return }
        if let notice {
            journal.warning("the log may lack records", ["epoch": "\(log.epoch)", "detail": notice])
        } else {
            journal.info("the log was accepted as it is", ["epoch": "\(log.epoch)"])
        }
    }
}
