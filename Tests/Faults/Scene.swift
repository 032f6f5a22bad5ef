import Foundation
import ReelBase
import ReelCore
import ReelLab
import ReelNet

/// One fault with its cluster, clients, evidence, and the queries and waits that the fault uses.
final class Scene {
    /// The error of a fault that had no effect, or whose effect could not be proven.
    struct NoEffect: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    /// The parts that all runs share, including the brokers.
    let ground: Ground
    /// The nodes: two gateways, and one or two snapshot nodes.
    let nodes: LocalCluster
    /// The streams on which clients publish.
    let streams: [StreamName]
    /// The folder for the evidence.
    let folder: String
    let load: LoadRun
    let histories: HistoryFolder
    let driver: History
    /// The current epoch.
    var epoch: Epoch

    /// The minimum rate of acknowledged events per second when a fault is injected.
    private static let rateMin = 500.0
    /// The rate at which clients publish. It is higher than the minimum, because a measured window can start or end
    /// between two acks.
    private static let rate = 550.0

    /// Creates a log, starts nodes on it, and prepares the clients.
    init(_ fault: Fault, on ground: Ground, seed: UInt64) async throws {
        self.ground = ground
        let folder = "\(ground.evidence)/\(fault.name.map { $0.isLetter || $0.isNumber ? "\($0)" : "-" }.joined())"
        self.folder = folder
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let log = try ground.makeLog(in: folder)
        let nodes = try Ground.again {
            try LocalCluster(
                reel: ground.reel,
                log: log,
                folder: folder,
                snapshots: fault.snapshots,
                common: ground.hasKafka ? [] : ["--partitions", "6"]
            )
        }
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
        plan.patienceSeconds = 120
        plan.settleSeconds = 240
        plan.histories = histories
        load = try LoadRun(plan)
    }

    // MARK: Queries

    /// The brokers.
    var kafka: LocalKafka {
        get throws { try ground.kafka() }
    }

    /// Returns the epoch of a gateway.
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

    /// Returns the partitions of the data topic. Another broker is asked if one hangs or does not know the topic yet.
    func partitions() throws -> [KafkaPeer.Partition] {
        let end = MonotonicClock.nowMs() + Self.patienceMs
        while true {
            let found = Result { try KafkaPeer(kafka.bootstrap).partitions(of: topic) }
            if case .success(let partitions) = found, !partitions.isEmpty { return partitions }
            if MonotonicClock.nowMs() >= end { return try found.get() }
            usleep(20_000)
        }
    }

    /// Returns a broker that fits and that leads a partition with streams.
    func leader(where fits: (Int) -> Bool) async throws -> Int {
        var leader = 0
        try await eventually("a broker that fits leads what is published on") {
            let partitions = try partitions()
            let used = streams.map { partitions[$0.partition(of: partitions.count)].leader }
            leader = used.first { $0 > 0 && fits($0) } ?? 0
            if leader == 0 { spreadLeaders() }
            return leader > 0
        }
        return leader
    }

    /// Makes all brokers lead the partitions that they led at first. A broker that was slow for a moment has lost them.
    private func spreadLeaders() {
        _ = try? kafka.tool(
            "org.apache.kafka.tools.LeaderElectionCommand",
            ["--election-type", "preferred", "--all-topic-partitions"]
        )
    }

    /// Returns the gateway with the most connections. Clients may have left the other gateway because it was slow for a
    /// moment.
    func busiestGateway() async throws -> LocalNode {
        var (busiest, most) = (nodes.gateways[0], -1)
        for gateway in nodes.gateways {
            let metrics = String(decoding: try await get(gateway, "/metrics"), as: UTF8.self)
            let count = metrics.firstMatch(of: /reel_gateway_connections (\d+)/).flatMap { Int($0.1) } ?? 0
            if count > most { (busiest, most) = (gateway, count) }
        }
        return busiest
    }

    /// Returns the counts of the clients so far.
    func statistics() async throws -> LoadStatistics { try await load.statistics() }

    /// Returns the number of void records that the first gateway has found.
    func voids() async throws -> Int {
        let metrics = String(decoding: try await get(nodes.gateways[0], "/metrics"), as: UTF8.self)
        return metrics.split(separator: "\n").filter { $0.hasPrefix("reel_gateway_void_records_total") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
            .reduce(0) { $0 + Int($1) }
    }

    /// Returns the last seq of each partition that a node has read.
    func heads(of node: LocalNode) async throws -> [Int: Seq] {
        let metrics = String(decoding: try await get(node, "/metrics"), as: UTF8.self)
        var heads: [Int: Seq] = [:]
        for match in metrics.matches(of: /reel_(?:gateway|snapshot)_seq\{partition="(\d+)"\} (-?\d+)/) {
            if let partition = Int(match.1) { heads[partition] = Seq(match.2) }
        }
        return heads
    }

    /// Returns the body of a GET request. The request is repeated until the node is ready.
    func get(_ node: LocalNode, _ target: String) async throws -> [UInt8] {
        var body: [UInt8] = []
        try await eventually("\(node.name) answers \(target)") {
            body = try await nodes.get(node, target)
            return true
        }
        return body
    }

    /// Publishes a new event through the first gateway and returns its answer.
    func publish(to stream: StreamName) async throws -> (status: Int, body: String) {
        let event = #"{"type":"noop","site":"\#(UUID().uuidString.lowercased())","op":0}"#
        let body = Array(#"{"events":[\#(event)]}"#.utf8)
        let answer = try await nodes.ask(
            "POST",
            nodes.gateways[0],
            "/v1/streams/\(stream)/events?outcome=0",
            body: body
        )
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }

    /// Returns the state of the log as a node reports it, with details. Throws `Unready` if the node is not ready.
    func logState(of node: LocalNode) async throws -> (word: String, detail: String) {
        let answer = try await nodes.ask("GET", node, "/readyz")
        let body = String(decoding: answer.body, as: UTF8.self)
        guard answer.status == 200 else { throw Unready(description: "\(node.name) is not ready: \(body)") }
        let members = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return (members?["log"] as? String ?? "nothing", members?["detail"] as? String ?? "")
    }

    /// The error of a node that is not ready. No state of the log may make a node unready.
    struct Unready: Error, CustomStringConvertible {
        let description: String
    }

    /// Waits until ready gateways report one of these states of the log. If `all` is true, every gateway with events in
    /// flight must report it. Otherwise one gateway is enough.
    func gateways(say words: Set<String>, all: Bool) async throws {
        let who = all ? "each gateway with events on their way" : "a gateway"
        try await eventually("\(who) says that the log is \(words.sorted().joined(separator: " or "))") {
            var (said, silent) = (0, 0)
            for gateway in nodes.gateways {
                if words.contains(try await logState(of: gateway).word) {
                    said += 1
                } else {
                    let metrics = String(decoding: try await get(gateway, "/metrics"), as: UTF8.self)
                    if !metrics.contains("reel_gateway_in_flight_events 0\n") { silent += 1 }
                }
            }
            return said > 0 && (!all || silent == 0)
        }
    }

    /// Dumps the whole log of the current epoch, or of another one, into the evidence.
    func dump(to name: String, epoch: Epoch? = nil) throws {
        let words = ["dump", "--log", nodes.log] + (epoch.map { ["--epoch", "\($0)"] } ?? [])
        let path = "\(folder)/\(name)"
        try Ground.again {
            try? FileManager.default.removeItem(atPath: path)
            let (code, said) = try ground.run(ground.reel, words, output: path)
            guard code == 0 else { throw NoEffect("the log cannot be dumped: \(said)") }
        }
    }

    // MARK: Waiting

    func seconds(_ count: Double) async throws {
        try await Task.sleep(for: .seconds(count))
    }

    /// Waits until `count` more events are acknowledged.
    func acks(_ count: Int) async throws {
        let goal = try await statistics().acked + count
        try await eventually("\(goal) acks") { try await statistics().acked >= goal }
    }

    /// Waits until events are acknowledged at the minimum rate for three seconds. Returns the rate.
    func fullLoad() async throws -> Double {
        var rate = 0.0
        do {
            try await eventually("enough acks") {
                // The clock is read outside of the two counts. A delay between them makes the measured rate lower, and
                // never higher.
                let start = MonotonicClock.nowMs()
                let before = try await statistics().acked
                try await seconds(3)
                let count = try await statistics().acked - before
                rate = Double(count) * 1_000 / Double(max(1, MonotonicClock.nowMs() - start))
                return rate >= Self.rateMin
            }
        } catch {
            throw NoEffect("not enough load: \(Int(rate)) acks/s, expected \(Int(Self.rateMin)); \(error)")
        }
        return rate
    }

    /// Waits until no more acks come, also for events in flight. Returns the number of acks.
    func lastAcks() async throws -> Int {
        var acked = -1
        try await eventually("no more acks come") {
            let before = acked
            acked = try await statistics().acked
            if acked == before { return true }
            try await seconds(3)
            return false
        }
        return acked
    }

    /// The timeout of all waits in milliseconds, long enough for a busy machine.
    private static let patienceMs: Int64 = 120_000

    /// Waits until the condition is true. An error other than `Unready` counts as false.
    func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
        let end = MonotonicClock.nowMs() + Self.patienceMs
        while true {
            var reason = ""
            do {
                if try await isTrue() { return }
            } catch let error as Unready {
                throw error
            } catch {
                reason = "; \(error)"
            }
            guard MonotonicClock.nowMs() < end else { throw NoEffect("never came: \(what)\(reason)") }
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

    /// Creates a new epoch with the operator's command, and waits until both gateways are in it. Returns the output of
    /// the command.
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

    /// Takes a broker away until others lead its partitions, but at least for `seconds`. Then it calls `look`, brings
    /// the broker back, and returns the proof.
    func broker(
        _ victim: Int,
        isLostBy loss: () async throws -> Void,
        for seconds: Double,
        _ look: () throws -> Void = {}
    ) async throws -> String {
        var led = 0
        try await eventually("broker \(victim) leads something") {
            led = try partitions().count { $0.leader == victim }
            if led == 0 { spreadLeaders() }
            return led > 0
        }
        let start = MonotonicClock.nowMs()
        try await loss()
        try await eventually("others lead what broker \(victim) led") {
            let partitions = (try? partitions()) ?? []
            return !partitions.isEmpty && partitions.allSatisfy { $0.leader != victim && $0.leader > 0 }
        }
        let tookMs = MonotonicClock.nowMs() - start
        try await self.seconds(max(0, seconds - Double(tookMs) / 1_000))
        try look()
        try kafka.resume(victim)
        try kafka.start([victim])
        try await inSync()
        return "broker \(victim) led \(led), others within \(tookMs) ms"
    }

    /// Sets the number of replicas that must have an event before it is acknowledged.
    func minimumInSync(_ count: Int) throws {
        try kafka.tool(
            "kafka.admin.ConfigCommand",
            ["--alter", "--topic", topic, "--add-config", "min.insync.replicas=\(count)"]
        )
    }
}

extension ChildProcess {
    /// The state of the process in `/proc`, such as `T` for a stopped process.
    var state: String {
        let line = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        return line.split(separator: ") ").last?.split(separator: " ").first.map(String.init) ?? ""
    }
}
