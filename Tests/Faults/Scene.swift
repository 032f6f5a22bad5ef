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

    /// What is claimed to be under way when a fault strikes, in events acked a second.
    private static let rateMin = 500.0
    /// A little more: a window that is measured may begin or end between two acks.
    private static let rate = 550.0

    /// A new log, nodes on it, and clients that are ready to begin.
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

    /// The data topic's partitions. A broker that is asked may hang, or not know them yet: the next one is asked then.
    func partitions() throws -> [KafkaPeer.Partition] {
        let end = Clock.nowMs() + Self.patienceMs
        while true {
            let found = Result { try KafkaPeer(kafka.bootstrap).partitions(of: topic) }
            if case .success(let partitions) = found, !partitions.isEmpty { return partitions }
            if Clock.nowMs() >= end { return try found.get() }
            usleep(20_000)
        }
    }

    /// A broker that leads partitions with streams, of those that fit.
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

    /// A broker that was slow for a moment has lost what it led: all lead again what they led at first.
    private func spreadLeaders() {
        _ = try? kafka.tool(
            "org.apache.kafka.tools.LeaderElectionCommand",
            ["--election-type", "preferred", "--all-topic-partitions"]
        )
    }

    /// The gateway that most clients are connected with: those of one that was slow for a moment have left it.
    func busiestGateway() async throws -> LocalNode {
        var (busiest, most) = (nodes.gateways[0], -1)
        for gateway in nodes.gateways {
            let metrics = String(decoding: try await get(gateway, "/metrics"), as: UTF8.self)
            let count = metrics.firstMatch(of: /reel_gateway_connections (\d+)/).flatMap { Int($0.1) } ?? 0
            if count > most { (busiest, most) = (gateway, count) }
        }
        return busiest
    }

    /// What clients have counted so far.
    func statistics() async throws -> LoadStatistics { try await load.statistics() }

    /// The records of the log that the first gateway has found to be void.
    func voids() async throws -> Int {
        let metrics = String(decoding: try await get(nodes.gateways[0], "/metrics"), as: UTF8.self)
        return metrics.split(separator: "\n").filter { $0.hasPrefix("reel_gateway_void_records_total") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
            .reduce(0) { $0 + Int($1) }
    }

    /// How far a node has read each partition.
    func heads(of node: LocalNode) async throws -> [Int: Seq] {
        let metrics = String(decoding: try await get(node, "/metrics"), as: UTF8.self)
        var heads: [Int: Seq] = [:]
        for match in metrics.matches(of: /reel_(?:gateway|snapshot)_seq\{partition="(\d+)"\} (-?\d+)/) {
            if let partition = Int(match.1) { heads[partition] = Seq(match.2) }
        }
        return heads
    }

    /// The body of a GET, once the node has one: it may not be ready yet, or stand still for a moment.
    func get(_ node: LocalNode, _ target: String) async throws -> [UInt8] {
        var body: [UInt8] = []
        try await eventually("\(node.name) answers \(target)") {
            body = try await nodes.get(node, target)
            return true
        }
        return body
    }

    /// What the first gateway says to a new event.
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

    /// The log's state, as a node says it, and what more it says of that; throws `Unready` where the node is.
    func logState(of node: LocalNode) async throws -> (word: String, detail: String) {
        let answer = try await nodes.ask("GET", node, "/readyz")
        let body = String(decoding: answer.body, as: UTF8.self)
        guard answer.status == 200 else { throw Unready(description: "\(node.name) is not ready: \(body)") }
        let members = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return (members?["log"] as? String ?? "nothing", members?["detail"] as? String ?? "")
    }

    /// A node says that it is not ready, which nothing that happens to the log makes it.
    struct Unready: Error, CustomStringConvertible {
        let description: String
    }

    /// Waits until gateways say that the log is in one of these states, though they are ready: all that have events on
    /// their way, or else any.
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

    /// Dumps a log, in whole, into the evidence: the current one, or that of another epoch.
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

    /// Waits until so many more events are acked.
    func acks(_ count: Int) async throws {
        let goal = try await statistics().acked + count
        try await eventually("\(goal) acks") { try await statistics().acked >= goal }
    }

    /// Waits until events are acked as fast as is claimed, for three seconds on end. Returns how fast they are.
    func fullLoad() async throws -> Double {
        var rate = 0.0
        do {
            try await eventually("enough acks") {
                // The clock is read outside of the counts: who is held up between finds fewer a second, never more.
                let start = Clock.nowMs()
                let before = try await statistics().acked
                try await seconds(3)
                let count = try await statistics().acked - before
                rate = Double(count) * 1_000 / Double(max(1, Clock.nowMs() - start))
                return rate >= Self.rateMin
            }
        } catch {
            throw NoEffect("not enough load: \(Int(rate)) acks/s, expected \(Int(Self.rateMin)); \(error)")
        }
        return rate
    }

    /// Waits until no more acks come, those that were on their way included. Returns how many there are then.
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

    /// As long as a busy machine may need.
    private static let patienceMs: Int64 = 120_000

    /// Waits. Who cannot say whether it is so is asked again.
    func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
        let end = Clock.nowMs() + Self.patienceMs
        while true {
            var reason = ""
            do {
                if try await isTrue() { return }
            } catch let error as Unready {
                throw error
            } catch {
                reason = "; \(error)"
            }
            guard Clock.nowMs() < end else { throw NoEffect("never came: \(what)\(reason)") }
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
        let start = Clock.nowMs()
        try await loss()
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
        return "broker \(victim) led \(led), others within \(tookMs) ms"
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
