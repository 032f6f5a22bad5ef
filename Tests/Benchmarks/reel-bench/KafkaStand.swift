import CKafkaFloor
import Foundation
import ReelCore
import ReelKafka
import ReelLab
import ReelLog

/// Three real brokers with the log of the nodes and a topic for the bare C program.
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
            throw NotMeasured("KAFKA_HOME is not set; it names the folder of a Kafka, with libs/*.jar")
        }
        self.folder = folder
        kafka = try LocalKafka(KafkaHome(home), brokers: 3)
        configuration = KafkaConfiguration(brokers: kafka.bootstrap.split(separator: ",").map(String.init))
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        epoch = try store.begin(partitions: partitions).epoch
        topic = TopicRole.name(of: epoch)
        try create(Self.rawTopic)
        try withFloor(Self.rawTopic) { _ = try KafkaPublisher.floor($0).publish(50_000, depth: 4096) }
    }

    private static let topicTool = "org.apache.kafka.tools.TopicCommand"

    /// Creates a topic on the same brokers in the same order as the log's partition 0, because brokers differ in speed.
    private func create(_ topic: String) throws {
        let brokers = try said("Replicas: ", of: self.topic) { $0.isNumber || $0 == "," }
        let assignment = brokers.split(separator: ",").joined(separator: ":")
        try kafka.tool(Self.topicTool, ["--create", "--topic", topic, "--replica-assignment", assignment])
    }

    /// Returns the text after `word` in the brokers' description of partition 0 of a topic.
    private func said(_ word: String, of topic: String, _ belongs: (Character) -> Bool) throws -> Substring {
        let text = try kafka.tool(Self.topicTool, ["--describe", "--topic", topic])
        guard let range = text.firstRange(of: word) else { throw BenchmarkError("found no `\(word)` in \(text)") }
        return text[range.upperBound...].prefix(while: belongs)
    }

    /// Returns the broker that leads partition 0 of the log.
    func leader() throws -> Int {
        let leader = try said("Leader: ", of: topic, \.isNumber)
        guard let number = Int(leader) else { throw BenchmarkError("found no leader: `\(leader)`") }
        return number
    }

    /// The value of `--log`.
    var log: String { "kafka:" + kafka.bootstrap }

    /// Runs a gateway on this log and calls `body` with it.
    func withGateway<R>(_ body: (LocalNode) async throws -> R) async throws -> R {
        try await withReel(["gateway", "--log", log], in: folder, body)
    }

    /// Runs `count` gateways on this log and calls `body` with them.
    func withGateways<R>(_ count: Int, _ body: ([LocalNode]) async throws -> R) async throws -> R {
        guard count > 0 else { return try await body([]) }
        return try await withGateway { node in
            try await withGateways(count - 1) { try await body([node] + $0) }
        }
    }

    /// Opens the bare C program on partition 0 of a topic, with Reel's settings of librdkafka.
    func withFloor<R>(_ topic: String, _ body: (KafkaFloor) throws -> R) throws -> R {
        let floor = try KafkaFloor(topic: topic, configuration)
        defer { floor.close() }
        return try body(floor)
    }

    /// Starts the bare relay on a topic of its own, so that it does not read the records of other writers.
    func relay() throws -> KafkaRelay {
        try create("relay")
        return try KafkaRelay(topic: "relay", configuration)
    }
}

/// The result of publishing.
struct PublishRun {
    var perSecond: Double
    var longestPauseMs: Double
    /// The latency of each event in microseconds, sorted.
    var micros: [Double]

    func percentile(_ part: Double) -> Double { micros[min(micros.count - 1, Int(Double(micros.count) * part))] }
}

/// The bare C program.
final class KafkaFloor {
    fileprivate let floor: OpaquePointer

    init(topic: String, _ configuration: KafkaConfiguration) throws {
        var error = [CChar](repeating: 0, count: 512)
        let floor = CStrings.lend(configuration) { producer, consumer in
            kafka_floor_open(producer, consumer, topic, 0, &error, Int32(error.count))
        }
        guard let floor else {
            let reason = error.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw BenchmarkError("the bare C program: \(String(decoding: reason, as: UTF8.self))")
        }
        self.floor = floor
    }

    func close() { kafka_floor_close(floor) }
}

/// The bare C program with a socket, in a process of its own.
final class KafkaRelay {
    let port: Int32
    private let pid: Int32

    init(topic: String, _ configuration: KafkaConfiguration) throws {
        var pid: Int32 = 0
        port = CStrings.lend(configuration) { kafka_floor_relay($0, $1, topic, 0, &pid) }
        guard port > 0 else { throw BenchmarkError("the bare relay does not start: errno \(errno)") }
        self.pid = pid
        Leftovers.started(pid)
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        Leftovers.ended(pid)
    }
}

/// A way to publish.
enum KafkaPublisher {
    case floor(KafkaFloor)
    /// Through the socket of a gateway or of the bare relay.
    case socket(port: Int32)

    /// Publishes `count` records of 200 bytes, `perFrame` in each message of a socket. If `perSecond` is 0, it
    /// publishes as fast as possible.
    func publish(_ count: Int, depth: Int = 100_000, perFrame: Int = 1, perSecond: Int = 0) throws -> PublishRun {
        let (number, depth, perSecond) = (Int32(count), Int32(depth), Int32(perSecond))
        var micros = [Double](repeating: 0, count: count)
        var run = kafka_floor_run()
        let status =
            switch self {
            case .floor(let floor): kafka_floor_publish(floor.floor, number, 200, depth, perSecond, &micros, &run)
            case .socket(let port):
                kafka_floor_publish_socket(port, number, 200, depth, Int32(perFrame), perSecond, &micros, &run)
            }
        guard status == 0 else { throw BenchmarkError("an event was refused, or the connection broke") }
        return PublishRun(
            perSecond: Double(count) / run.seconds,
            longestPauseMs: run.longest_pause_ms,
            micros: micros.sorted()
        )
    }
}

extension LocalNode {
    /// Returns the publisher that uses the socket of this node.
    func publisher() throws -> KafkaPublisher {
        guard let port else { throw BenchmarkError("found \(url), expected a port") }
        return .socket(port: port)
    }
}

/// Pairs of C strings: name, value, …, NULL.
enum CStrings {
    typealias Pointers = UnsafePointer<UnsafePointer<CChar>?>

    /// Calls `body` with the settings of a producer and of a consumer.
    static func lend<R>(_ configuration: KafkaConfiguration, _ body: (Pointers, Pointers) -> R) -> R {
        lend(configuration.settings(of: .producer)) { producer in
            lend(configuration.settings(of: .tail)) { body(producer, $0) }
        }
    }

    static func lend<R>(
        _ pairs: [(name: String, value: String)],
        _ body: (Pointers) -> R
    ) -> R {
        let texts = pairs.flatMap { [strdup($0.name), strdup($0.value)] }
        defer { for text in texts { free(text) } }
        let pointers = texts.map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}
