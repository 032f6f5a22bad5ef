import Glibc

/// A real Apache Kafka on this machine: brokers that are also controllers, on free ports of the loopback, with data in
/// a temporary folder. The brokers end when the last reference to this object is released, or with this process.
///
/// Use it from one thread at a time; every call blocks.
public final class LocalKafka {
    /// The folder for the brokers' disks and logs.
    public let folder: TemporaryFolder
    private let home: KafkaHome
    private let heapMiB: Int
    private let brokers: [KafkaBroker]

    /// Creates a cluster of brokers, numbered from 1, and waits until it is ready.
    ///
    /// - Parameters:
    ///   - home: the installed Kafka.
    ///   - brokers: the number of brokers.
    ///   - listeners: further listeners: a name, and a security protocol such as `SASL_SSL`.
    ///   - isProxied: true for one more listener with a `FaultProxy` for each broker: see `proxied` and `proxy(_:)`.
    ///   - properties: further server properties, which replace those of this type.
    ///   - heapMiB: the heap of each broker, in MiB.
    /// - Throws: An error if the files cannot be written, there are too few free ports, or a broker does not start.
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
        // The brokers must end before the folder is removed.
        for broker in brokers { broker.process?.killNow() }
    }

    /// The addresses of the plain listeners in the form for a client: `127.0.0.1:PORT,…`.
    public var bootstrap: String { bootstrap(of: KafkaBroker.plain) }

    /// Returns the addresses of the listeners of this name for clients.
    public func bootstrap(of listener: String) -> String {
        brokers.map { $0.advertised(listener) }.joined(separator: ",")
    }

    /// The addresses for clients that must reach each broker through its proxy. Brokers reach each other without a
    /// proxy.
    public var proxied: String { bootstrap(of: KafkaBroker.proxied) }

    /// Returns the proxy of a broker; nil if the brokers have none.
    public func proxy(_ broker: Int) -> FaultProxy? { self[broker].proxy }

    /// Returns the address of the plain listener of one broker.
    public func address(_ broker: Int) -> String { self[broker].address(KafkaBroker.plain) }

    /// Returns the broker's process; nil before it was started.
    public func process(_ broker: Int) -> ChildProcess? { self[broker].process }

    /// Returns true if the broker's process exists, even if it hangs.
    public func isRunning(_ broker: Int) -> Bool { self[broker].isRunning }

    private subscript(broker: Int) -> KafkaBroker { brokers[broker - 1] }

    // MARK: Trouble

    /// Kills the broker with SIGKILL.
    public func kill(_ broker: Int) { self[broker].process?.killNow() }

    /// Stops the broker with SIGTERM: it first hands over its partitions. It is killed if that takes more than
    /// `timeoutMs`.
    public func stop(_ broker: Int, timeoutMs: Int = 15_000) {
        self[broker].process?.terminate(timeoutMs: timeoutMs)
    }

    /// Makes the broker hang; its sockets stay open.
    public func pause(_ broker: Int) { self[broker].process?.pause() }

    /// Lets the broker continue.
    public func resume(_ broker: Int) { self[broker].process?.resume() }

    /// Starts the given brokers that do not run, all at once, and waits until they are ready.
    public func start(_ started: [Int]) throws(ChildProcess.Failure) {
        for broker in started { try launch(broker) }
        for broker in started { try self[broker].waitUntilReady() }
    }

    /// Starts the broker if it does not run, and does not wait.
    func launch(_ broker: Int) throws(ChildProcess.Failure) { try self[broker].launch(home, heapMiB: heapMiB) }

    /// Returns true if the started broker accepts clients.
    func isReady(_ broker: Int) -> Bool { self[broker].isReady }

    // MARK: Asking

    /// Returns the broker that is the active controller, according to the files of the running brokers; nil before the
    /// first election.
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

    /// Returns the broker that leads a partition, according to Kafka's own tool; nil if there is none.
    public func leader(of topic: String, _ partition: Int) throws(ChildProcess.Failure) -> Int? {
        let said = try tool("org.apache.kafka.tools.TopicCommand", ["--describe", "--topic", topic])
        let line = said.split(separator: "\n").first { $0.contains("Partition: \(partition)\t") }
        return line?.split(separator: "\t").first { $0.hasPrefix("Leader: ") }.flatMap { Int($0.dropFirst(8)) }
    }

    /// Runs one of Kafka's own tools with `--bootstrap-server` before its arguments.
    @discardableResult
    public func tool(_ mainClass: String, _ arguments: [String]) throws(ChildProcess.Failure) -> String {
        try home.run(mainClass, ["--bootstrap-server", bootstrap] + arguments)
    }

    private func number(_ name: String, in json: String) -> Int? {
        guard let range = json.firstRange(of: "\"\(name)\":") else { return nil }
        return Int(json[range.upperBound...].prefix { $0.isNumber })
    }

    // MARK: Disks

    /// Formats the disks. Kafka's own tool takes seconds, so it formats only the first disk. The others are copies with
    /// other ids.
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

    /// Returns an id in Kafka's form: 16 bytes in URL-safe Base64. It does not begin with a dash, which Kafka's tools
    /// take for a flag.
    private static func randomID() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        // The last of the 22 letters carries two bits only.
        return String((0..<21).map { _ in letters.randomElement() ?? "A" }) + "A"
    }
}
