package import ReelCore
package import ReelLog

/// A log that forwards every call to another log. A conforming type replaces only the methods that it changes.
package protocol ForwardingLog: EventLog {
    /// The log that receives the calls.
    var log: any EventLog { get }
}

extension ForwardingLog {
    package var epoch: Epoch { log.epoch }
    package var partitions: Int { log.partitions }
    package var recordBytesMax: Int { log.recordBytesMax }
    package var notice: String? { log.notice }

    package func bounds(_ partition: Int) throws(LogError) -> LogBounds { try log.bounds(partition) }

    package func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds? {
        try log.readable(partition, from: from)
    }

    package func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) { log.append(records, to: partition, done: done) }

    package func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        log.tail(partition, from: from, to: sink)
    }

    package func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try log.read(partition, from: from, to: to, bytes: bytes)
    }

    package func announce(_ node: NodeAnnouncement) throws(LogError) { try log.announce(node) }
    package func nodes() throws(LogError) -> [NodeAnnouncement] { try log.nodes() }
    package func close() { log.close() }
}
