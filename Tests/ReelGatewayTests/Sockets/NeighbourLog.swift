import EventLogConformance
import ReelBase
import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// A log that lists a node of another process. The node's announcement is fresh at each look,
/// so the node never seems to hang.
final class NeighbourLog: ForwardingLog {
    let log: any EventLog
    private let neighbour: Mutex<NodeAnnouncement>
    /// The end that the log reports, though it returns no records up to there.
    private let end = Mutex(Seq.none)

    init(_ log: any EventLog, _ neighbour: NodeAnnouncement) {
        self.log = log
        self.neighbour = Mutex(neighbour)
    }

    /// Creates a log with a neighbour that has read nothing, at an address where no server listens.
    convenience init(_ log: any EventLog, id: String = "other", role: String = "gateway", advertised: String? = nil) {
        let announcement = NodeAnnouncement(
            id: id,
            role: role,
            url: "http://127.0.0.1:1",
            advertised: advertised,
            build: "0",
            positions: [],
            atMs: 0
        )
        self.init(log, announcement)
    }

    /// Makes the neighbour announce that it has read the first partition up to `seq`.
    func neighbour(reads seq: Seq) {
        neighbour.withLock { $0.positions = [.init(partition: 0, seq: seq)] }
    }

    /// Makes the log report this end, and the neighbour announce that it has read up to there.
    func neighbour(readsToEnd seq: Seq) {
        end.withLock { $0 = seq }
        neighbour(reads: seq)
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        let (bounds, end) = (try log.bounds(partition), end.withLock { $0 })
        return end > bounds.last ? LogBounds(first: max(0, bounds.first), last: end) : bounds
    }

    /// Makes the neighbour send this announcement.
    func neighbour(says announcement: NodeAnnouncement) {
        neighbour.withLock { $0 = announcement }
    }

    func nodes() throws(LogError) -> [NodeAnnouncement] {
        var announced = neighbour.withLock { $0 }
        announced.atMs = WallClock.nowMs()
        return try log.nodes() + [announced]
    }

    func close() { log.close() }
}
