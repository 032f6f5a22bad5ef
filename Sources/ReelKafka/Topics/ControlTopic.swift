internal import Glibc
internal import ReelCore
internal import ReelLog

/// The topic `reel.control`: it says which log is the current one, and which logs were before it.
final class ControlTopic: Sendable {
    private let admin: KafkaAdmin
    private let writer: TopicWriter
    private let reading: PartitionReading

    init(_ configuration: KafkaConfiguration, admin: KafkaAdmin, log: @escaping KafkaLogLine) {
        let name = TopicRole.controlName
        self.admin = admin
        writer = TopicWriter(topic: name, configuration: configuration, log: log)
        reading = PartitionReading(topic: name, configuration: configuration, counters: KafkaCounters(), log: log)
    }

    /// Returns the last valid record; nil: no broker that answers knows the topic, or it has no record.
    func current() throws(LogError) -> CurrentLog? {
        guard try admin.topic(TopicRole.controlName) != nil else { return nil }
        let ends = try reading.ends(0)
        var current: CurrentLog?
        var next = ends.lowerBound
        while next < ends.upperBound {
            let batch = try reading.read(0, from: next, to: ends.upperBound - 1, bytes: 1 << 20)
            guard batch.seqs.upperBound > next else {
                throw LogError(.logUnavailable, "\(TopicRole.controlName) answers with nothing from \(next) on")
            }
            for entry in batch.entries {
                guard let record = batch.withRecord(entry, { CurrentLog(key: $0, json: $1) }) else { continue }
                if record.follows(current) { current = record }
            }
            next = batch.seqs.upperBound
        }
        return current
    }

    /// Writes a record, and reads back whether it is valid. Throws `conflict` if another caller was faster.
    func advance(to next: CurrentLog) throws(LogError) {
        let former = try current()
        if former == next { return }
        guard next.follows(former) else { throw .anotherIsCurrent(former, next) }
        do throws(LogError) {
            try writer.append(key: CurrentLog.key, value: next.json)
        } catch {
            // The record may be in the topic despite the error.
            guard isCurrent(next) else { throw error }
        }
        let found = try current()
        guard found == next else { throw .anotherIsCurrent(found, next) }
    }

    /// True if a record that was written without an answer is found as the current one within some seconds.
    private func isCurrent(_ next: CurrentLog) -> Bool {
        for _ in 0..<Self.readBackAttempts {
            if (try? current()) == next { return true }
            usleep(500_000)
        }
        return false
    }

    private static let readBackAttempts = 10

    func close() {
        writer.close()
        reading.close()
    }
}

extension LogError {
    fileprivate static func anotherIsCurrent(_ found: CurrentLog?, _ wanted: CurrentLog) -> LogError {
        let found = found.map { "number \($0.number), epoch \($0.epoch)" } ?? "none"
        return LogError(
            .conflict,
            "found as the current log \(found); expected is the one before number \(wanted.number)"
        )
    }
}
