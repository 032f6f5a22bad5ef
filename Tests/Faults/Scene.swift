import Foundation
import ReelCore
import ReelLab
import ReelNet

/// One fault while clients publish and listen: the cluster as it is then, what can be asked and what waited for.
final class Scene {
    /// Why a fault says nothing: it did not come about.
    struct NoEffect: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    /// The brokers; not there where a fault needs none.
    let ground: Ground
    /// Our nodes: two gateways and a snapshot node.
    let nodes: LocalCluster
    /// What is published on.
    let streams: [StreamName]
    /// Where the evidence goes.
    let folder: String
    let load: LoadRun
    let histories: HistoryFolder
    let driver: History
    /// The current one.
    var epoch: Epoch

    /// More than the 500 that are claimed: what waits during the fault comes on top of it.
    static let rate = 550.0

    /// A new log, nodes on it, and clients that are ready to begin.
    init(_ fault: Fault, on ground: Ground, seed: UInt64) async throws {
        self.ground = ground
        folder = "\(ground.evidence)/\(fault.name.map { $0.isLetter || $0.isNumber ? "\($0)" : "-" }.joined())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let log = try ground.makeLog(in: folder)
        let nodes = try LocalCluster(
            reel: ground.reel,
            log: log,
            folder: folder,
            snapshots: fault.snapshots,
            common: ground.hasKafka ? [] : ["--partitions", "6"]
        )
        self.nodes = nodes
        epoch = try await Self.epoch(nodes, nodes.gateways[0])
        histories = try HistoryFolder(folder)
        driver = histories.history(of: "driver", .driver)
        streams = LoadPlan.streams("faults", count: 8) ?? []
        var plan = LoadPlan(urls: nodes.gateways.map(\.url), streams: streams)
        plan.publishers = 8
        plan.readers = 8
        plan.rate = Self.rate
        plan.seed = seed
        plan.settleSeconds = 60
        plan.histories = histories
        load = try LoadRun(plan)
    }

    // MARK: Asking

    /// The brokers.
    var kafka: LocalKafka {
        get throws { try ground.kafka() }
    }

    /// The epoch that a gateway is in.
    func epoch(of gateway: LocalNode) async throws -> Epoch { try await Self.epoch(nodes, gateway) }

    private static func epoch(_ nodes: LocalCluster, _ gateway: LocalNode) async throws -> Epoch {
        let cluster = try JSONSerialization.jsonObject(with: Data(try await nodes.get(gateway, "/v1/cluster")))
        guard let text = (cluster as? [String: Any])?["epoch"] as? String, let epoch = Epoch(text) else {
            throw NoEffect("\(gateway.name) names no epoch")
        }
        return epoch
    }

    /// The data topic.
    var topic: String { "reel.\(epoch)" }

    /// The data topic's partitions.
    func partitions() throws -> [KafkaPeer.Partition] {
        try KafkaPeer(kafka.bootstrap).partitions(of: topic)
    }

    /// A broker that leads partitions with streams, of those that fit.
    func leader(where fits: (Int) -> Bool) throws -> Int {
        let partitions = try partitions()
        let used = streams.map { partitions[$0.partition(of: partitions.count)].leader }
        guard let leader = used.first(where: fits) else { throw NoEffect("no broker leads what is published on") }
        return leader
    }

    /// What clients have counted so far.
    func statistics() async throws -> LoadStatistics { try await load.statistics() }

    /// The records of the log that the first gateway has found to be void.
    func voids() async throws -> Int {
        let metrics = String(decoding: try await nodes.get(nodes.gateways[0], "/metrics"), as: UTF8.self)
        return metrics.split(separator: "\n").filter { $0.hasPrefix("reel_gateway_void_records_total") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
            .reduce(0) { $0 + Int($1) }
    }

    /// How far a node has read each partition.
    func heads(of node: LocalNode) async throws -> [Int: Seq] {
        let metrics = String(decoding: try await nodes.get(node, "/metrics"), as: UTF8.self)
        var heads: [Int: Seq] = [:]
        for match in metrics.matches(of: /reel_(?:gateway|snapshot)_seq\{partition="(\d+)"\} (-?\d+)/) {
            if let partition = Int(match.1) { heads[partition] = Seq(match.2) }
        }
        return heads
    }

    /// The answer of the first gateway to a request for the events of a stream.
    func events(of stream: StreamName) async throws -> [UInt8] {
        try await nodes.get(nodes.gateways[0], "/v1/streams/\(stream)/events?limit=1000")
    }

    /// What the first gateway says to a new event.
    func publish(to stream: StreamName) async throws -> (status: Int, body: String) {
        let event = #"{"type":"noop","site":"\#(UUID().uuidString.lowercased())","op":0}"#
        let body = Array(#"{"events":[\#(event)]}"#.utf8)
        let answer = try await nodes.ask("POST", nodes.gateways[0], "/v1/streams/\(stream)/events", body: body)
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }

    /// The log's state, as a node says it, and what more it says of that.
    func logState(of node: LocalNode) async throws -> (word: String, detail: String) {
        let answer = try await nodes.ask("GET", node, "/readyz")
        let members = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return (members?["log"] as? String ?? "nothing", members?["detail"] as? String ?? "")
    }

    /// All objects with their values, in every stream, as a snapshot node has folded them.
    func objects() async throws -> Set<String> {
        var objects: Set<String> = []
        for stream in streams {
            let lines = try await nodes.get(nodes.snapshots[0], "/v1/streams/\(stream)/snapshot").split(separator: 0x0a)
            for line in lines {
                let members = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
                guard let name = members?["object"], let fields = members?["fields"] as? [String: [Any]] else {
                    continue
                }
                let values = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.first ?? "")" }
                objects.insert("\(stream) \(name) \(values)")
            }
        }
        return objects
    }

    /// Dumps a log, in whole, into the evidence: the current one, or that of another epoch.
    func dump(to name: String, epoch: Epoch? = nil) throws {
        let words = ["dump", "--log", nodes.log] + (epoch.map { ["--epoch", "\($0)"] } ?? [])
        let (code, said) = try ground.run(ground.reel, words, output: "\(folder)/\(name)")
        guard code == 0 else { throw NoEffect("the log cannot be dumped: \(said)") }
    }

    // MARK: Waiting

    func seconds(_ count: Double) async throws {
        try await Task.sleep(for: .seconds(count))
    }

    /// Waits until so many more events are acked.
    func acks(_ count: Int) async throws {
        let goal = try await statistics().acked + count
        try await eventually("\(goal) acks") { try await statistics().acked >= goal }
    }

    /// Waits, for as long as a busy machine may need.
    func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
        let end = Clock.nowMs() + 120_000
        while try await !isTrue() {
            guard Clock.nowMs() < end else { throw NoEffect("never came: \(what)") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Waits until every replica is in sync.
    func inSync() async throws {
        try await eventually("all replicas are in sync") {
            let partitions = (try? partitions()) ?? []
            return !partitions.isEmpty && partitions.allSatisfy { $0.inSync == $0.replicas }
        }
    }

    /// Has an operator's command make a new epoch, and waits until both gateways are in it. Returns what was printed.
    func newEpoch(_ words: String...) async throws -> String {
        let old = epoch
        let report = try ChildProcess.output(of: ground.reel, ["epoch", "new", "--log", nodes.log] + words)
        try await eventually("both gateways have gone over") {
            for gateway in nodes.gateways {
                guard let epoch = try? await epoch(of: gateway), epoch != old else { return false }
            }
            return true
        }
        epoch = try await epoch(of: nodes.gateways[0])
        return report
    }

    // MARK: Brokers

    /// Takes a broker away, waits until others lead what it led, and after `seconds`, and a last look, has it back.
    func broker(
        _ victim: Int,
        isLostBy loss: () throws -> Void,
        for seconds: Double,
        _ look: () throws -> Void = {}
    ) async throws -> String {
        let led = try partitions().count { $0.leader == victim }
        guard led > 0 else { throw NoEffect("broker \(victim) leads nothing") }
        let start = Clock.nowMs()
        try loss()
        try await eventually("others lead what broker \(victim) led") {
            let partitions = (try? partitions()) ?? []
            return !partitions.isEmpty && partitions.allSatisfy { $0.leader != victim && $0.leader > 0 }
        }
        let tookMs = Clock.nowMs() - start
        try await self.seconds(max(0, seconds - Double(tookMs) / 1_000))
        try look()
        try kafka.resume(victim)
        try kafka.start([victim])
        try await inSync()
        return "broker \(victim) led \(led), others after \(tookMs) ms"
    }

    /// How many replicas must have an event before it is acked.
    func minimumInSync(_ count: Int) throws {
        try kafka.tool(
            "kafka.admin.ConfigCommand",
            ["--alter", "--topic", topic, "--add-config", "min.insync.replicas=\(count)"]
        )
    }
}

extension ChildProcess {
    /// `T` for one that is stopped.
    var state: String {
        let line = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        return line.split(separator: ") ").last?.split(separator: " ").first.map(String.init) ?? ""
    }
}
