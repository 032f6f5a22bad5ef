import EventLogConformance
import NodeTestSupport
import ReelBase
import ReelCore
import ReelGateway
import ReelLab
import ReelLog
import ReelNet
import ReelNode
import ReelSQLite
import ReelSnapshot
import Synchronization
import TestSupport

@testable import ReelTool

/// A node with both roles on a log of two partitions. One partition is brought into one of the
/// states of docs/operations/health.md.
final class HealthStand {
    /// One of the two log objects that `reel serve` opens. Each can fail separately.
    private final class Opening: ForwardingLog {
        let log: any EventLog
        private let failure = Mutex<LogError?>(nil)
        /// While it is true, new tails deliver nothing.
        private let isStalled = Atomic<Bool>(false)
        private let neighbour = Mutex<NodeAnnouncement?>(nil)

        init(_ log: any EventLog) { self.log = log }

        /// Makes later tails of the partition end with this error. For `damaged` the ends of the log are still known.
        func fail(_ error: LogError) { failure.withLock { $0 = error } }
        /// Adds the announcement of this node, with the current time, to each list of nodes.
        func neighbour(_ node: NodeAnnouncement) { neighbour.withLock { $0 = node } }
        func stall() { isStalled.store(true, ordering: .relaxed) }

        func bounds(_ partition: Int) throws(LogError) -> LogBounds {
            let failure = failure.withLock { $0 }
            if partition == HealthStand.partition, let failure, failure.code != .damaged { throw failure }
            return try log.bounds(partition)
        }

        func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
            guard partition == HealthStand.partition else { return log.tail(partition, from: from, to: sink) }
            let tail = TailHandle(partition: partition, from: from, sink: sink)
            if isStalled.load(ordering: .relaxed) { return tail }
            guard let failure = failure.withLock({ $0 }) else { return log.tail(partition, from: from, to: sink) }
            tail.fail(failure)
            return tail
        }

        func nodes() throws(LogError) -> [NodeAnnouncement] {
            guard var neighbour = neighbour.withLock({ $0 }) else { return try log.nodes() }
            neighbour.atMs = WallClock.nowMs()
            return try log.nodes() + [neighbour]
        }

        func close() {}
    }

    private static let site = "00000000-0000-4000-8000-000000000001"
    /// The stream that the questions are about, and its partition.
    private static let stream = StreamName("todo")!
    private static let partition = stream.partition(of: 2)
    /// A stream of the other partition.
    private static let calm = (0..<64).lazy.compactMap { StreamName("calm\($0)") }.first {
        $0.partition(of: 2) != partition
    }!

    private let memory: MemoryLog
    private let (folders, gateways): (Opening, Opening)
    private let folder: TemporaryFolder
    private let lines = Lines()
    private let snapshot: SnapshotNode
    private let gateway: Gateway
    private let probe: NodeProbe
    private let loop: EventLoop
    private let http: LoopBound<HTTPClient>
    private let address: NodeAddress
    /// The other node in the state `another node has folded more than the log has`.
    private let other: RogueServer
    /// Locks the snapshot file, so that the node cannot write it.
    private var lock: Connection?
    private var ops: Op = 0

    var epoch: Epoch { memory.epoch }
    var journalLines: [String] { lines.all }

    /// Starts a node in a state of the table.
    init(_ state: String) async throws {
        memory = try MemoryLog(partitions: 2)
        let health =
            #"{"roles":[{"role":"snapshot","partitions":[{"partition":\#(Self.partition),"code":"ahead_of_log"}]}]}"#
        other = try RogueServer { _ in
            .text("HTTP/1.1 503 Lost\ncontent-length: \(health.utf8.count)\n\n\(health)")
        }
        (folders, gateways) = (Opening(memory), Opening(memory))
        folder = try TemporaryFolder(prefix: "reel-health-")
        let (memory, folders) = (memory, folders)
        await Self.append(memory, 0..<10)
        await Self.append(memory, 0..<1, to: Self.calm)
        let first = try SnapshotNode(
            log: folders,
            settings: SnapshotSettings(folder: folder.path),
            logger: Logger(threshold: .error),
            metrics: Metrics()
        )
        let positions = Self.partition == 0 ? [9, 0] : [0, 9] as [Seq]
        try await eventually("the events are folded") { first.positions == positions }
        first.close()
        switch state {
        case "folding what there was at the start":
            await Self.append(memory, 10..<20)
            folders.stall()
        case "log row damaged":
            await Self.append(memory, 10..<20)
            folders.fail(LogError(.damaged, "the record at seq 15 of partition \(Self.partition) is damaged"))
        case "log trimmed beyond the fold":
            await Self.append(memory, 10..<20)
            memory.trim(Self.partition, before: 15)
        case "log ends before the fold": memory.rollBack(Self.partition, to: 5)
        case "log is another one than was folded":
            memory.rollBack(Self.partition, to: 5)
            await Self.append(memory, 5..<20, title: "other")
        case "another node has folded more than the log has":
            var announcement = NodeAnnouncement(
                id: "other",
                role: "snapshot",
                url: "http://127.0.0.1:\(other.port)",
                advertised: nil,
                build: "0",
                epoch: memory.epoch,
                atMs: 0
            )
            announcement.stops = [
                .init(role: "snapshot", partition: Self.partition, code: .aheadOfLog, lost: Witness(seq: 30, hash: 1))
            ]
            gateways.neighbour(announcement)
        case "barrier of a newer version":
            await Self.append(memory, key: "~reel", [#"{"fold":2,"type":"barrier"}"#])
        case "epoch ended":
            await Self.append(memory, key: "~reel", [#"{"end":"00000000000000ff","type":"barrier"}"#])
        default: break
        }
        let logger = Logger(threshold: .debug) { [lines] in lines.add($0) }
        let metrics = Metrics()
        snapshot = try SnapshotNode(
            log: folders,
            settings: SnapshotSettings(folder: folder.path),
            logger: logger,
            metrics: metrics
        )
        snapshot.waitUntilCompared(ms: 60_000)
        var settings = GatewaySettings()
        settings.node = .forTests
        gateway = try Gateway(log: gateways, settings: settings, logger: logger, metrics: metrics, state: snapshot)
        probe = try await NodeProbe()
        let loop = try EventLoop()
        self.loop = loop
        http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        address = try NodeAddress("http://\(gateway.address)")
        switch state {
        case "snapshot file cannot be written (full disk)":
            let path = "\(folder.path)/\(memory.epoch)/partition-\(Self.partition).sqlite"
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 60_000)
            try connection.execute("BEGIN IMMEDIATE")
            lock = connection
            await Self.append(memory, 10..<11)
        case "log away for the fold":
            let error = LogError(.logUnavailable, "nobody answers")
            folders.fail(error)
            memory.breakTails(Self.partition, error)
        default: break
        }
    }

    /// Waits until the node shows the state.
    func reach(_ row: HealthTableTests.Row) async throws {
        try await eventually("the node is ready or not") { try await readiness() == row["ready"] }
        try await eventually("the metric shows it") { try await stoppedPartitions() == row["metric"] }
        try await eventually("the journal has it") {
            journalLines.contains { $0.contains(event: row["log line"]) }
        }
        try await eventually("publishes are answered so") { try await publish() == row["publish"] }
    }

    func end() async {
        lock?.rollback()
        lock = nil
        probe.close()
        loop.stop()
        loop.join()
        for _ in 0..<2 { gateway.end.begin() }
        await gateway.waitUntilEnded()
        snapshot.close()
        memory.close()
    }

    // MARK: Questions

    private func ask(_ method: String, _ target: String, _ body: String = "") async throws -> HTTPResponse {
        var request = HTTPClientRequest(
            method,
            host: gateway.address.host,
            port: gateway.address.port,
            target: target,
            body: Array(body.utf8)
        )
        request.timeout = .seconds(1_000)
        return try await http.fetch(request)
    }

    /// Returns the code of a refusal, otherwise the status.
    private func word(_ answer: HTTPResponse) -> String {
        Refusal(answer).code?.rawValue ?? "\(answer.status)"
    }

    /// Returns the answer to a question about a stream: its status, or the code of the refusal.
    func status(_ target: String, of stream: StreamName = HealthStand.stream) async throws -> String {
        let answer = try await ask("GET", "/v1/streams/\(stream)/\(target)")
        return answer.status == 200 ? "200" : word(answer)
    }

    /// Returns the answers of the other partition to a publish, a fetch, and questions for a snapshot and an object.
    func otherPartition() async throws -> [String] {
        [
            try await publish(to: Self.calm), try await status("events?after=-1", of: Self.calm),
            try await status("snapshot", of: Self.calm), try await status("objects/task/0", of: Self.calm),
        ]
    }

    /// Returns the result of `reel digest`: 200, or the code that it prints.
    func digest() async throws -> String {
        let run = await CommandRun(["digest", "\(Self.stream)", "--url", "\(address)"])
        if run.code == .done { return "200" }
        return run.errors.firstMatch(of: /\(([a-z_]+)\)/).map { String($0.1) } ?? run.errors
    }

    func readiness() async throws -> String { "\(try await ask("GET", "/readyz").status)" }

    /// Publishes an event, and returns `ack` or the code of the refusal.
    func publish(to stream: StreamName = HealthStand.stream) async throws -> String {
        // The event of a new site is appended, whatever its outcome is.
        let site = "00000000-0000-4000-8000-0000000001\(ops < 10 ? "0" : "")\(ops % 100)"
        ops += 1
        let event = #"{"site":"\#(site)","op":0,"type":"noop"}"#
        let answer = try await ask("POST", "/v1/streams/\(stream)/events?outcome=0", #"{"events":[\#(event)]}"#)
        guard answer.status == 200 else { return word(answer) }
        let text = String(decoding: answer.body, as: UTF8.self)
        guard let code = text.firstMatch(of: /"code":"([a-z_]+)"/)?.1 else { return "ack" }
        return String(code)
    }

    /// Returns the labels of `reel_node_stopped_partitions` with the value 1, such as `snapshot
    /// damaged`; `–` if there is none.
    func stoppedPartitions() async throws -> String {
        let answer = try await ask("GET", "/metrics")
        let lines = String(decoding: answer.body, as: UTF8.self).split(separator: "\n").filter {
            $0.hasPrefix("reel_node_stopped_partitions{") && $0.hasSuffix("} 1")
        }
        let labels = lines.map { line in
            let words = line.split(separator: "\"")
            return "\(words[3]) \(words[1])"
        }
        return labels.isEmpty ? "–" : labels.sorted().joined(separator: ", ")
    }

    /// Returns the worst finding of the doctor, such as `problem: partitions`; `ok` if there is none.
    func doctor() async throws -> String {
        let visit = ClusterVisit(probe: probe, tls: try TLSClient(), token: nil)
        let findings = Diagnosis(report: await visit.report(named: [address], log: nil)).findings
        guard let worst = findings.first(where: { $0.about != "limits" }), worst.level != .ok, worst.level != .note
        else { return "ok" }
        return "\(worst.level): \(worst.about)"
    }

    // MARK: The log

    private static func append(
        _ log: MemoryLog,
        _ seqs: Range<Seq>,
        to stream: StreamName = stream,
        title: String = "text"
    ) async {
        await append(
            log,
            key: "\(stream)",
            to: stream.partition(of: 2),
            seqs.map { seq in
                let (type, text) = seq == 0 ? ("insert", title) : ("update", "\(title) \(seq)")
                let (base, fields) = (seq - 1, #"{"title":"\#(text)"}"#)
                return EventText.logged(type, site, seq, base: base, model: "task", id: "0", fields: fields).text
            }
        )
    }

    private static func append(
        _ log: MemoryLog,
        key: String,
        to partition: Int = partition,
        _ values: [String]
    ) async {
        let records = values.map { LogAppend(key: Array(key.utf8), value: Array($0.utf8)) }
        await withCheckedContinuation { done in log.append(records, to: partition) { _ in done.resume() } }
    }
}
