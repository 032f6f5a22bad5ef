import Glibc

/// A real Apache Kafka on this machine: brokers that are controllers too, on free ports of the loopback, with data in a
/// folder of their own. They end with the last reference to this, or with this process.
///
/// Use it from one thread at a time; every call blocks.
public final class LocalKafka {
    /// What the brokers' disks and logs lie in.
    public let folder: TemporaryFolder
    private let home: KafkaHome
    private let heapMiB: Int
    private let brokers: [KafkaBroker]

    /// Makes a cluster of brokers, numbered from 1, and waits until it is ready.
    ///
    /// - Parameters:
    ///   - listeners: more of them: a name, and a security protocol such as `SASL_SSL`.
    ///   - isProxied: one more, behind a `FaultProxy` of each broker: see `proxied` and `proxy(_:)`.
    ///   - properties: more server properties, which win over ours.
    ///   - heapMiB: of each broker.
    public init(
        _ home: KafkaHome,
        brokers: Int,
        listeners: [String: String] = [:],
        isProxied: Bool = false,
        properties: [String: String] = [:],
        heapMiB: Int = 256
    ) throws(ChildProcess.Failure) {
        var listeners = listeners
        if isProxied { listeners[KafkaBroker.proxied] = "PLAINTEXT" }
        self.home = home
        self.heapMiB = heapMiB
        let path = try TemporaryFolder(prefix: "reel-kafka-")
        folder = path
        let names = [KafkaBroker.controller, KafkaBroker.plain] + listeners.keys.sorted()
        var ports = try LoopbackPort.free(brokers * names.count)[...]
        self.brokers = try (1...brokers).map { (node) throws(ChildProcess.Failure) in
            defer { ports = ports.dropFirst(names.count) }
            let own = Dictionary(uniqueKeysWithValues: zip(names, ports))
            return try KafkaBroker(node: node, ports: own, folder: "\(path.path)/\(node)")
        }
        for broker in self.brokers {
            mkdir(broker.folder, 0o755)
            let text = broker.properties(of: self.brokers, listeners: listeners, extra: properties)
            try Files.write(Array(text.utf8), to: broker.propertiesFile)
        }
        try format()
        try start(Array(1...brokers))
    }

    deinit {
        // Before the folder goes.
        for broker in brokers { broker.process?.killNow() }
    }

    /// Where the plain listeners are, as a client wants it: `127.0.0.1:PORT,…`.
    public var bootstrap: String { bootstrap(of: KafkaBroker.plain) }

    /// Where clients of the listeners of this name knock.
    public func bootstrap(of listener: String) -> String {
        brokers.map { $0.advertised(listener) }.joined(separator: ",")
    }

    /// Where those knock who reach each broker through its proxy. Brokers reach each other without.
    public var proxied: String { bootstrap(of: KafkaBroker.proxied) }

    /// What stands before a broker; nil where the brokers are not proxied.
    public func proxy(_ broker: Int) -> FaultProxy? { self[broker].proxy }

    /// Where the plain listener of one broker is.
    public func address(_ broker: Int) -> String { self[broker].address(KafkaBroker.plain) }

    /// The broker's process; nil before it was started.
    public func process(_ broker: Int) -> ChildProcess? { self[broker].process }

    /// Whether the broker's process is there, be it hung.
    public func isRunning(_ broker: Int) -> Bool { self[broker].isRunning }

    private subscript(broker: Int) -> KafkaBroker { brokers[broker - 1] }

    // MARK: Trouble

    /// SIGKILL.
    public func kill(_ broker: Int) { self[broker].process?.killNow() }

    /// SIGTERM: the broker hands its partitions over first. Killed if that takes more than `timeoutMs`.
    public func stop(_ broker: Int, timeoutMs: Int = 15_000) {
        self[broker].process?.terminate(timeoutMs: timeoutMs)
    }

    /// It hangs, its sockets stay open.
    public func pause(_ broker: Int) { self[broker].process?.pause() }

    /// It goes on.
    public func resume(_ broker: Int) { self[broker].process?.resume() }

    /// Starts those of these brokers that do not run, all at once, and waits until they are ready.
    public func start(_ started: [Int]) throws(ChildProcess.Failure) {
        for broker in started { try launch(broker) }
        for broker in started { try self[broker].waitUntilReady() }
    }

    /// Starts the broker if it does not run, and waits for nothing.
    func launch(_ broker: Int) throws(ChildProcess.Failure) { try self[broker].launch(home, heapMiB: heapMiB) }

    /// Whether the broker that was started takes clients.
    func isReady(_ broker: Int) -> Bool { self[broker].isReady }

    // MARK: Asking

    /// The broker that is the active controller, as those that run have written it down; nil before the first election.
    public func controller() -> Int? {
        let states = brokers.filter(\.isRunning).map {
            String(decoding: Files.bytes(of: "\($0.data)/__cluster_metadata-0/quorum-state"), as: UTF8.self)
        }
        let leaders = states.compactMap { state -> (epoch: Int, leader: Int)? in
            guard let leader = number("leaderId", in: state), leader > 0, let epoch = number("leaderEpoch", in: state)
            else { return nil }
            return (epoch, leader)
        }
        return leaders.max { $0.epoch < $1.epoch }?.leader
    }

    /// The broker that leads a partition, as Kafka's own tool says it; nil where none does.
    public func leader(of topic: String, _ partition: Int) throws(ChildProcess.Failure) -> Int? {
        let said = try tool("org.apache.kafka.tools.TopicCommand", ["--describe", "--topic", topic])
        let line = said.split(separator: "\n").first { $0.contains("Partition: \(partition)\t") }
        return line?.split(separator: "\t").first { $0.hasPrefix("Leader: ") }.flatMap { Int($0.dropFirst(8)) }
    }

    /// Runs one of Kafka's own tools with `--bootstrap-server` in front of its arguments.
    @discardableResult
    public func tool(_ mainClass: String, _ arguments: [String]) throws(ChildProcess.Failure) -> String {
        try home.run(mainClass, ["--bootstrap-server", bootstrap] + arguments)
    }

    private func number(_ name: String, in json: String) -> Int? {
        guard let range = json.firstRange(of: "\"\(name)\":") else { return nil }
        return Int(json[range.upperBound...].prefix { $0.isNumber })
    }

    // MARK: Disks

    /// The disks, as Kafka's own tool makes them. It takes seconds, so it makes the first; those of the others are the
    /// same but for their numbers.
    private func format() throws(ChildProcess.Failure) {
        let (first, cluster) = (brokers[0], Self.randomID())
        try home.run(
            "kafka.tools.StorageTool",
            ["format", "--cluster-id", cluster, "--config", first.propertiesFile]
        )
        let checkpoint = Files.bytes(of: first.data + "/bootstrap.checkpoint")
        for broker in brokers.dropFirst() {
            mkdir(broker.data, 0o755)
            let meta = "version=1\ncluster.id=\(cluster)\nnode.id=\(broker.node)\ndirectory.id=\(Self.randomID())\n"
            try Files.write(Array(meta.utf8), to: broker.data + "/meta.properties")
            try Files.write(checkpoint, to: broker.data + "/bootstrap.checkpoint")
        }
    }

    /// An id as Kafka writes them: 16 bytes in URL-safe Base64. No dash in front, which its tools take for a flag.
    private static func randomID() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        // The last of the 22 letters carries two bits only.
        return String((0..<21).map { _ in letters.randomElement() ?? "A" }) + "A"
    }
}
