import CKafkaFloor
import Foundation
import ReelCore
import ReelKafka
import ReelLab
import ReelLog

/// Three real brokers, with a topic for the bare C program and the log of the nodes beside it.
final class KafkaStand {
    let kafka: LocalKafka
    let configuration: KafkaConfiguration
    let epoch: Epoch
    /// The topic of the log.
    let topic: String
    private let folder: String

    static let rawTopic = "floor"

    init(partitions: Int, in folder: String) throws {
        guard let home = ProcessInfo.processInfo.environment["KAFKA_HOME"] else {
            throw NotMeasured("KAFKA_HOME does not say where a Kafka lies: a folder with libs/*.jar")
        }
        self.folder = folder
        kafka = try LocalKafka(KafkaHome(home), brokers: 3)
        configuration = KafkaConfiguration(brokers: kafka.bootstrap.split(separator: ",").map(String.init))
        let store = try KafkaLogStore(configuration) { _, _ in }
        defer { store.close() }
        epoch = try store.begin(partitions: partitions).epoch
        topic = TopicRole.name(of: epoch)
        try kafka.tool(Self.topicTool, ["--create", "--topic", Self.rawTopic, "--partitions", "1"])
        try withFloor(Self.rawTopic) { floor in _ = try floor.publish(50_000, depth: 4096) }
    }

    private static let topicTool = "org.apache.kafka.tools.TopicCommand"

    /// The broker that leads partition 0 of the log.
    func leader() throws -> Int {
        let text = try kafka.tool(Self.topicTool, ["--describe", "--topic", topic])
        guard let range = text.firstRange(of: "Leader: "),
            let leader = Int(text[range.upperBound...].prefix { $0.isNumber })
        else { throw BenchmarkError("found no leader in \(text)") }
        return leader
    }

    /// What `--log` says.
    var log: String { "kafka:" + kafka.bootstrap }

    /// A gateway on this log.
    func withGateway<R>(_ body: (LocalNode) async throws -> R) async throws -> R {
        try await withReel(["gateway", "--log", log], in: folder, body)
    }

    /// So many gateways on this log.
    func withGateways<R>(_ count: Int, _ body: ([LocalNode]) async throws -> R) async throws -> R {
        guard count > 0 else { return try await body([]) }
        return try await withGateway { node in
            try await withGateways(count - 1) { try await body([node] + $0) }
        }
    }

    /// The bare C program on partition 0 of a topic, with our settings.
    func withFloor<R>(_ topic: String, _ body: (KafkaFloor) throws -> R) throws -> R {
        let floor = try KafkaFloor(topic: topic, configuration)
        defer { floor.close() }
        return try body(floor)
    }
}

/// Publishing and how it went.
struct PublishRun {
    var perSecond: Double
    var longestPauseMs: Double
    /// Of each event, sorted.
    var micros: [Double]

    func percentile(_ part: Double) -> Double { micros[min(micros.count - 1, Int(Double(micros.count) * part))] }
}

/// The bare C program.
final class KafkaFloor {
    private let floor: OpaquePointer

    init(topic: String, _ configuration: KafkaConfiguration) throws {
        var error = [CChar](repeating: 0, count: 512)
        let floor = CStrings.lend(configuration.settings(of: .producer)) { producer in
            CStrings.lend(configuration.settings(of: .tail)) { consumer in
                kafka_floor_open(producer, consumer, topic, 0, &error, Int32(error.count))
            }
        }
        guard let floor else {
            let reason = error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw BenchmarkError("the bare C program: \(String(decoding: reason, as: UTF8.self))")
        }
        self.floor = floor
    }

    func close() { kafka_floor_close(floor) }

    /// So many records of 200 bytes; without `perSecond` as fast as they go.
    func publish(_ count: Int, depth: Int = 100_000, perSecond: Int = 0) throws -> PublishRun {
        try Self.run(count) { micros, run in
            kafka_floor_publish(floor, Int32(count), 200, Int32(depth), Int32(perSecond), micros, run)
        }
    }

    /// The same through a gateway's socket.
    static func publish(
        _ count: Int,
        through node: LocalNode,
        depth: Int = 100_000,
        perFrame: Int = 1,
        perSecond: Int = 0
    ) throws -> PublishRun {
        guard let port = Int32(node.url.split(separator: ":").last ?? "") else {
            throw BenchmarkError("found \(node.url), expected a port")
        }
        return try run(count) { micros, run in
            kafka_floor_publish_socket(
                port,
                Int32(count),
                200,
                Int32(depth),
                Int32(perFrame),
                Int32(perSecond),
                micros,
                run
            )
        }
    }

    private static func run(
        _ count: Int,
        _ body: (UnsafeMutablePointer<Double>, UnsafeMutablePointer<kafka_floor_run>) -> Int32
    ) throws -> PublishRun {
        var micros = [Double](repeating: 0, count: count)
        var run = kafka_floor_run()
        guard body(&micros, &run) == 0 else { throw BenchmarkError("an event was refused, or the connection broke") }
        return PublishRun(
            perSecond: Double(count) / run.seconds,
            longestPauseMs: run.longest_pause_ms,
            micros: micros.sorted()
        )
    }
}

/// Pairs of texts as C wants them: name, value, …, NULL.
enum CStrings {
    static func lend<R>(
        _ pairs: [(name: String, value: String)],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> R
    ) -> R {
        let texts = pairs.flatMap { [strdup($0.name), strdup($0.value)] }
        defer { for text in texts { free(text) } }
        let pointers = texts.map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}
