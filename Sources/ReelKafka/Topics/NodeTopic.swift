internal import ReelBase
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// The topic `reel.nodes`. Each node announces itself and its positions there at intervals, and reads the announcements
/// of the others.
///
/// It is read on demand, from where the last read ended. Between two reads nothing runs.
final class NodeTopic: NodeDirectory {
    private let writer: TopicWriter
    private let reading: PartitionReading
    private let known = Mutex(Known())

    private struct Known {
        var heard = HeardNodes()
        /// The next seq to read; nil: nothing was read yet.
        var next: Seq?
    }

    /// The size of one read, in bytes.
    private static let readBytes = 4 << 20

    init(_ configuration: KafkaConfiguration, log: @escaping KafkaLogLine) {
        let name = TopicRole.nodesName
        writer = TopicWriter(topic: name, configuration: configuration, log: log)
        reading = PartitionReading(topic: name, configuration: configuration, counters: KafkaCounters(), log: log)
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) {
        try writer.append(key: Array(node.id.utf8), value: node.json)
    }

    func nodes() throws(LogError) -> [NodeAnnouncement] {
        try known.withLock { known throws(LogError) in
            let ends = try reading.ends(0)
            // The brokers delete old announcements. A topic that was deleted and created again begins at 0.
            var next = max(known.next ?? 0, ends.lowerBound)
            if next > ends.upperBound { next = ends.lowerBound }
            while next < ends.upperBound {
                let batch = try reading.read(0, from: next, to: ends.upperBound - 1, bytes: Self.readBytes)
                guard batch.seqs.upperBound > next else { break }
                for entry in batch.entries {
                    guard let node = batch.withRecord(entry, { NodeAnnouncement(json: $1) }) else { continue }
                    known.heard.hear(node, nowMs: WallClock.nowMs())
                }
                next = batch.seqs.upperBound
            }
            known.next = next
            known.heard.hasReadAll(forgettingBefore: NodeAnnouncement.oldestMs())
            return known.heard.nodes.values.sorted { $0.id < $1.id }
        }
    }
}
