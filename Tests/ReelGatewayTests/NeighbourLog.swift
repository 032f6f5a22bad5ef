import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// A log through which a node of another process announces itself whenever somebody looks: it never seems to hang.
final class NeighbourLog: EventLog {
    private let log: MemoryLog
    private let neighbour: Mutex<NodeAnnouncement>

    init(_ log: MemoryLog, _ neighbour: NodeAnnouncement) {
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

    var epoch: Epoch { log.epoch }
    var partitions: Int { log.partitions }

    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        log.tail(partition, from: from, to: sink)
    }

    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try log.read(partition, from: from, to: to, bytes: bytes)
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds { try log.bounds(partition) }

    func append(_ records: [LogAppend], to partition: Int, done: @escaping @Sendable (Result<[Seq], LogError>) -> Void)
    {
        log.append(records, to: partition, done: done)
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) { try log.announce(node) }

    func nodes() throws(LogError) -> [NodeAnnouncement] {
        var announced = neighbour.withLock { $0 }
        announced.atMs = WallClock.nowMs()
        return try log.nodes() + [announced]
    }

    func close() { log.close() }
}
