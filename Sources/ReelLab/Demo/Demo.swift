import Glibc
import ReelClient
import ReelCore

/// The demo of Reel's main features. Devices publish, and every device gets every event in one order. One device misses
/// a range and fetches it, and one starts from a snapshot. A gateway is killed in the middle. At the end all have the
/// same digest.
public final class Demo {
    let screen: DemoScreen
    let cluster: DemoCluster
    let transport: NetTransport
    let light, todo, note, clip, total: String
    var devices: [DemoDevice] = []

    /// Starts the nodes.
    ///
    /// - Parameters:
    ///   - reel: the path of the program itself.
    ///   - kafka: the Kafka whose three brokers hold the log, and one of which is killed as well; nil: the log is a
    ///     SQLite file.
    ///   - screen: the output.
    /// - Throws: `ChildProcess.Failure` if there are too few file descriptors, or a process does not start. `NetError`
    ///   if the process has no descriptor or thread left.
    public init(reel: String, kafka: KafkaHome? = nil, screen: DemoScreen) throws {
        try Self.reserveDescriptors(kafka == nil ? 128 : 512)
        self.screen = screen
        screen.title("reel demo: two gateways and a snapshot node on one log, and devices that share data")
        if kafka != nil { screen.say("The log is on three Kafka brokers, which take a while to start.") }
        cluster = try DemoCluster(reel: reel, folder: try TemporaryFolder(prefix: "reel-demo-"), kafka: kafka)
        transport = try NetTransport()
        let names = DemoCluster.streamNames(["light", "todo", "note", "clip", "total"])
        (light, todo, note, clip, total) = (names[0], names[1], names[2], names[3], names[4])
    }

    /// A snapshot node has 70 descriptors open, on Kafka 130; a broker has more.
    private static func reserveDescriptors(_ needed: Int) throws(ChildProcess.Failure) {
        guard let limit = DescriptorLimit.reserve(needed) else { return }
        throw ChildProcess.Failure(
            description: "each process of the demo needs \(needed) file descriptors, and may have \(limit); "
                + DescriptorLimit.advice(needed)
        )
    }

    /// Runs all chapters. Returns true if every check has passed.
    public func run() async throws -> Bool {
        screen.chapter("Three processes, one log")
        if let brokers = cluster.brokers { screen.say("the log    \(brokers.bootstrap)") }
        for node in cluster.nodes { screen.say("\(node.name)  \(node.url)  pid \(node.process.pid)") }
        let ann = try await device("ann", at: cluster.a)
        let bob = try await device("bob", at: cluster.b)
        try await lightSwitch(ann, bob)
        try cluster.interruption.check()
        try await todoList(ann, bob)
        try await twoTypists(ann, bob)
        try cluster.interruption.check()
        try await missedRange(ann)
        try cluster.interruption.check()
        let publishers = [ann, bob, try await device("cem", at: cluster.a), try await device("dora", at: cluster.b)]
        try await killedGateway(publishers)
        try cluster.interruption.check()
        if let brokers = cluster.brokers { try await killedBroker(of: brokers, publishers) }
        try cluster.interruption.check()
        try await lateDevice()
        try await finalTable()
        screen.title("")
        screen.title(
            screen.failures == 0
                ? "All held: nothing lost, nothing twice, one order, equal digests. \(screen.elapsed)"
                : "\(screen.failures) of the checks above failed."
        )
        return screen.failures == 0
    }

    /// Prints commands to try, and leaves the nodes running until the process is asked to end.
    public func keep() async throws {
        cluster.folder.keep = true
        let living = cluster.nodes.filter { !$0.process.hasEnded() }
        let url = living.first { $0 !== cluster.snapshot }?.url ?? cluster.a.url
        screen.title("")
        screen.title("The nodes go on. Try, in another terminal:")
        screen.say("reel tail \(todo) --url \(url)")
        screen.say("reel get \(todo) --url \(url)")
        screen.say("reel digest \(total) --url \(url) --url \(cluster.snapshot.url)")
        screen.say("reel dump --log \(cluster.log)")
        screen.say("curl \(url)/v1/cluster")
        screen.title("Ctrl-C ends them; their files stay in \(cluster.folder.path)")
        try await cluster.interruption.wait()
    }

    /// Ends devices and nodes.
    public func end() async {
        for device in devices { await device.client.close() }
        cluster.end()
    }

    /// Returns a device that is connected to this gateway. A client chooses its first node at random, so the device is
    /// recreated until it has chosen that one.
    func device(
        _ name: String,
        at node: LocalNode,
        gaps: SyncClient.GapSource = .connection
    ) async throws -> DemoDevice {
        while true {
            let device = try DemoDevice(name, cluster, transport: transport, gaps: gaps)
            try await device.client.open(light)
            try await device.connected()
            if device.client.status.connectedNode == node.url {
                devices.append(device)
                return device
            }
            await device.client.close()
        }
    }

    /// Waits until these devices have folded a stream up to the same seq.
    func settle(_ streams: [SyncStream], to seq: Seq) async throws {
        for stream in streams { try await stream.waitUntil(seq: seq) }
    }
}
