import Glibc

/// One broker of a `LocalKafka`: its disk, its log, its process.
final class KafkaBroker {
    let node: Int
    /// The ports of its listeners, by name.
    let ports: [String: Int]
    /// What stands before the listener `proxied`; nil: there is none.
    let proxy: FaultProxy?
    let folder: String
    private(set) var process: ChildProcess?
    /// Where in its log the lines of this start begin.
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

    /// Where it listens.
    func address(_ listener: String) -> String { "127.0.0.1:\(ports[listener] ?? 0)" }

    /// Where clients are to knock.
    func advertised(_ listener: String) -> String {
        guard listener == Self.proxied, let proxy else { return address(listener) }
        return "127.0.0.1:\(proxy.port)"
    }

    /// Starts its process.
    func launch(_ home: KafkaHome, heapMiB: Int) throws(ChildProcess.Failure) {
        guard !isRunning else { return }
        logStart = Files.size(of: log)
        // The quick compiler alone: on a small machine the other one takes more than it gives for minutes.
        let options = [
            "-XX:TieredStopAtLevel=1", "-Xms\(heapMiB)m", "-Xmx\(heapMiB)m", "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            "-Dlog4j2.level=INFO", "-cp", home.classPath, "kafka.Kafka", propertiesFile,
        ]
        process = try ChildProcess(home.java, options, outputLog: log, errorLog: log)
    }

    /// Whether it has joined the cluster and takes clients.
    var isReady: Bool {
        Files.bytes(of: log, from: logStart).firstRange(of: Array("Transition from STARTING to STARTED".utf8)) != nil
    }

    /// Waits until it has joined the cluster and takes clients.
    func waitUntilReady(timeoutMs: Int = 180_000) throws(ChildProcess.Failure) {
        let deadline = Clock.nowMs() + Int64(timeoutMs)
        while !isReady {
            guard isRunning, Clock.nowMs() < deadline else {
                let said = Files.bytes(of: log, from: logStart)
                let lines = String(decoding: said.suffix(2_000), as: UTF8.self)
                let what = isRunning ? "is not ready after \(timeoutMs) ms" : "ended while it started"
                throw ChildProcess.Failure(description: "Kafka's broker \(node) \(what); its log ends: \(lines)")
            }
            usleep(20_000)
        }
    }

    /// What is in `server.properties`: small, quick to notice that somebody has gone, and as strict about data as a
    /// cluster should be. `extra` wins over it.
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
            // A broker that is gone is missed after a second and a half; Kafka's default is nine.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.fetch.timeout.ms": "1000",
            "replica.lag.time.max.ms": "3000",
            // Kafka's own topics, as few and small as they can be.
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
