import EventLogConformance
import Foundation
import ReelCore
import ReelKafka
import ReelLog
import Testing

/// The brokers in `REEL_KAFKA`, written as `HOST:PORT,HOST:PORT`.
struct RealKafka: TrimmableLog {
    let brokers: [String]

    static let fromEnvironment: RealKafka? = {
        let list = ProcessInfo.processInfo.environment["REEL_KAFKA"] ?? ""
        return list.isEmpty ? nil : RealKafka(brokers: list.split(separator: ",").map(String.init))
    }()

    var testDescription: String { brokers.joined(separator: ",") }

    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
        let log = try log(Epoch.random(), partitions: partitions)
        defer { log.close() }
        try await body(log)
    }

    func trim(_ log: any EventLog, before seq: Seq) throws {
        try Admin(brokers).trim("reel.\(log.epoch)", 0, before: seq)
    }

    /// Creates a topic and returns a log in it.
    func log(_ epoch: Epoch, partitions: Int = 1) throws -> KafkaLog {
        let store = try KafkaLogStore(KafkaConfiguration(brokers: brokers)) { _, _, _ in }
        defer { store.close() }
        try store.create(epoch, partitions: partitions)
        return try open(epoch)
    }

    /// Returns a log in an existing topic.
    func open(_ epoch: Epoch) throws -> KafkaLog {
        let store = try KafkaLogStore(KafkaConfiguration(brokers: brokers)) { _, _, _ in }
        defer { store.close() }
        return try #require(try store.open(epoch) as? KafkaLog)
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test without `REEL_KAFKA`, and reports that nothing was tested.
    static var onARealKafka: Self {
        .enabled(if: RealKafka.fromEnvironment != nil, "REEL_KAFKA names no broker: nothing was tested on a real one")
    }
}
