import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// A log through which a node of another process announces itself whenever somebody looks: it never seems to hang.
final class NeighbourLog: ForwardingLog {
    let log: any EventLog
    private let neighbour: Mutex<NodeAnnouncement>

    init(_ log: any EventLog, _ neighbour: NodeAnnouncement) {
        self.log = log
        self.neighbour = Mutex(neighbour)
    }

    /// From now on the neighbour says that it has read the first partition up to there.
    func neighbour(reads seq: Seq) {
        neighbour.withLock { $0.positions = [.init(partition: 0, seq: seq)] }
    }

    /// From now on the neighbour says this.
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
