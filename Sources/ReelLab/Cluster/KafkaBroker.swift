import Glibc
import ReelBase

/// One broker of a `LocalKafka`: its disk, its log, its process.
final class KafkaBroker {
    let node: Int
    /// The ports of its listeners, by name.
    let ports: [String: Int]
    /// The proxy for the listener `proxied`; nil: there is none.
    let proxy: FaultProxy?
    let folder: String
    private(set) var process: ChildProcess?
    /// The offset in its log at which the lines of the present start begin.
    private var logStart = 0

    static let plain = "PLAINTEXT"
    static let controller = "CONTROLLER"
    static let proxied = "PROXIED"

    init(node: Int, ports: [String: Int], folder: String) throws(ChildProcess.Failure) {
        self.node = node
        self.ports = ports
        self.folder = folder
        proxy = if let port = ports[Self.proxied] { try FaultProxy(to: UInt16(port)) } else { nil }
    }

    deinit {
        proxy?.end()
    }

    var propertiesFile: String { folder + "/server.properties" }
    var data: String { folder + "/data" }
    var log: String { folder + "/broker.log" }
    var isRunning: Bool { process.map { !$0.hasEnded() } ?? false }

    /// Returns the address of a listener.
    func address(_ listener: String) -> String { "127.0.0.1:\(ports[listener] ?? 0)" }

    /// Returns the address of a listener for clients.
    func advertised(_ listener: String) -> String {
        guard listener == Self.proxied, let proxy else { return address(listener) }
        return "127.0.0.1:\(proxy.port)"
    }

    /// Starts the process of the broker, unless it runs.
    func launch(_ home: KafkaHome, heapMiB: Int) throws(ChildProcess.Failure) {
        guard !isRunning else { return }
        logStart = Files.size(of: log)
        // Only the quick compiler: on a small machine the other one costs more than it saves for minutes.
        let options = [
            "-XX:TieredStopAtLevel=1", "-Xms\(heapMiB)m", "-Xmx\(heapMiB)m", "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            "-Dlog4j2.level=INFO", "-cp", home.classPath, "kafka.Kafka", propertiesFile,
        ]
        process = try ChildProcess(home.java, options, outputLog: log, errorLog: log)
    }

    /// True if the broker has joined the cluster and accepts clients.
    var isReady: Bool {
        Files.bytes(of: log, from: logStart).firstRange(of: Array("Transition from STARTING to STARTED".utf8)) != nil
    }

    /// Waits until the broker has joined the cluster and accepts clients.
    func waitUntilReady(timeoutMs: Int = 180_000) throws(ChildProcess.Failure) {
        let deadline = MonotonicClock.nowMs() + Int64(timeoutMs)
        while !isReady {
            guard isRunning, MonotonicClock.nowMs() < deadline else {
                let said = Files.bytes(of: log, from: logStart)
                let lines = String(decoding: said.suffix(2_000), as: UTF8.self)
                let what = isRunning ? "is not ready after \(timeoutMs) ms" : "ended while it started"
                throw ChildProcess.Failure(description: "Kafka's broker \(node) \(what); its log ends: \(lines)")
            }
            usleep(20_000)
        }
    }

    /// Returns the text of `server.properties`. The broker is small, detects a lost broker quickly, and is as strict
    /// about data as a cluster should be. `extra`: properties that replace these.
    func properties(of cluster: [KafkaBroker], listeners: [String: String], extra: [String: String]) -> String {
        let size = cluster.count
        let (replicas, inSync) = (min(size, 3), max(1, min(size, 3) - 1))
        let open = [Self.plain] + listeners.keys.sorted()
        func urls(_ names: [String], _ address: (String) -> String) -> String {
            names.map { "\($0)://\(address($0))" }.joined(separator: ",")
        }
        var values = [
            "process.roles": "broker,controller",
            "node.id": "\(node)",
            "controller.quorum.voters": cluster.map { "\($0.node)@\($0.address(Self.controller))" }
                .joined(separator: ","),
            "controller.listener.names": Self.controller,
            "listeners": urls(open + [Self.controller], address),
            "advertised.listeners": urls(open, advertised),
            "listener.security.protocol.map":
                ([(Self.controller, "PLAINTEXT"), (Self.plain, "PLAINTEXT")]
                + listeners.sorted { $0.key < $1.key }).map { "\($0.0):\($0.1)" }.joined(separator: ","),
            "log.dirs": data,
            "auto.create.topics.enable": "false",
            "unclean.leader.election.enable": "false",
            "default.replication.factor": "\(replicas)",
            "min.insync.replicas": "\(inSync)",
            // A lost broker is detected after a second and a half; Kafka's default is nine.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.fetch.timeout.ms": "1000",
            "replica.lag.time.max.ms": "3000",
            // Kafka's own topics are as few and small as possible.
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "num.network.threads": "2",
            "num.io.threads": "4",
        ]
        for topic in ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
            values["\(topic).replication.factor"] = "\(replicas)"
        }
        for topic in ["transaction.state.log", "share.coordinator.state.topic"] {
            values["\(topic).min.isr"] = "\(inSync)"
        }
        values.merge(extra) { $1 }
        return values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
    }
}
