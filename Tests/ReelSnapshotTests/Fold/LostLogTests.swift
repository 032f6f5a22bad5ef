import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests nodes whose log no longer matches the records that they have folded.
@Suite(.timeLimit(.minutes(5)))
struct LostLogTests {
    private func folded(_ count: Int64, _ lab: Lab) async throws {
        var writer = Writer(seed: 1)
        try await lab.log.append((0..<count).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, count - 1)
        node.close()
    }

    /// Returns the states and codes that the metrics of a node show, as labels.
    private func shown(_ metrics: Metrics, _ node: SnapshotNode) -> [Substring] {
        HealthWatch.register({ NodeHealth([node.health]) }, metrics)
        let lines = metrics.text().split(separator: "\n").filter { $0.hasSuffix("} 1") }
        return ["reel_snapshot_log_state", "reel_node_ready", "reel_node_stopped_partitions"].flatMap { name in
            lines.filter { $0.hasPrefix(name + "{") }.map { $0.dropFirst(name.count).dropLast(2) }
        }
    }

    @Test("a node that has folded more than the log holds reports `ahead_of_log` and answers nothing")
    func reportsAheadOfLog() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        lab.log.rollBack(0, to: 12)
        let metrics = Metrics()
        let node = try lab.node(metrics: metrics)
        defer { node.close() }
        try await eventually("a refusal") { node.refusals == [.aheadOfLog] }
        #expect(node.logState == .aheadOfLog)
        #expect(node.problems.first?.hasPrefix("partition 0: ahead_of_log: ") == true, "\(node.problems)")
        #expect(shown(metrics, node) == [#"{state="ahead_of_log"}"#, #"{code="ahead_of_log",role="snapshot"}"#])
        #expect(node.loss(of: 0)?.code == .aheadOfLog)
        let stop = try #require(node.health.partitions[0].stop)
        #expect(stop.lost?.seq == 19, "what it announces to the gateways")
    }

    @Test("the answer to `/readyz` names the log's state, and of each partition the code and what was found")
    func readyz() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        lab.log.rollBack(0, to: 12)
        let logger = Logger(threshold: .error)
        let node = try SnapshotServer(log: lab.log, settings: lab.settings, common: .forTests, logger: logger)
        let loop = try EventLoop()
        let http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        let (host, port) = (node.address.host, node.address.port)
        var request = HTTPClientRequest("GET", host: host, port: port, target: "/readyz")
        request.timeout = .seconds(1_000)
        var body = ""
        while !body.contains("stopped") { body = String(decoding: try await http.fetch(request).body, as: UTF8.self) }
        #expect(
            body.hasPrefix(#"{"ready":false,"leaving":false,"reason":"partition 0 has stopped: ahead_of_log: "#),
            "\(body)"
        )
        #expect(body.contains(#""log":"ahead_of_log","detail":"partition 0: ahead_of_log: "#), "\(body)")
        #expect(
            body.contains(#""code":"ahead_of_log","stopped":"this node has folded partition 0 to seq 19"#),
            "\(body)"
        )
        // The second call ends the node without a drain.
        for _ in 0..<2 { node.end.begin() }
        await node.waitUntilEnded()
        loop.stop()
        loop.join()
    }

    @Test("a stopped node reports `diverged` after its log is rewritten, and does not fold the new records")
    func rewrittenMeanwhile() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        lab.log.rollBack(0, to: 12)
        var other = Writer(seed: 2)
        try await lab.log.append((12..<40).map { other.event(at: $0) }, key: "todo", to: 0)
        let metrics = Metrics()
        let node = try lab.node(metrics: metrics)
        defer { node.close() }
        try await eventually("a refusal") { node.refusals == [.diverged] }
        #expect(node.logState == .diverged)
        #expect(shown(metrics, node) == [#"{state="diverged"}"#, #"{code="diverged",role="snapshot"}"#])
        #expect(try lab.reader(0).lines(of: StreamName("todo")!, after: .none).seq == 19)
    }

    @Test("a node still reports `diverged` when the log becomes unavailable")
    func divergedDuringOutage() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        let log = SkippingLog(lab.log)
        let node = try SnapshotNode(
            log: log,
            settings: lab.settings,
            logger: Logger(threshold: .error),
            metrics: Metrics()
        )
        defer { node.close() }
        try await eventually("it answers") { node.refusals.isEmpty }
        var writer = Writer(seed: 2)
        let record = LogAppend(
            key: Array("todo".utf8),
            value: Array(writer.event(at: 20).utf8),
            witness: Witness(seq: 15, hash: 7)
        )
        await withCheckedContinuation { done in lab.log.append([record], to: 0) { _ in done.resume() } }
        try await eventually("a refusal") { node.refusals == [.diverged] }
        lab.log.lose(0, LogError(.logUnavailable, "nobody answers"))
        // The node has checked its log again once it has asked for the log's ends.
        for _ in 0..<3 {
            let asked = log.boundsAsked
            try await eventually("the node looks again") { log.boundsAsked > asked }
        }
        #expect(node.refusals == [.diverged])
        #expect(node.loss(of: 0)?.code == .diverged, "an outage takes nothing back")
    }

    @Test("a node that was compared answers while the log is away") func away() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        let node = try lab.node()
        defer { node.close() }
        try await eventually("it answers") { node.refusals.isEmpty }
        lab.log.lose(0, LogError(.logUnavailable, "nobody answers"))
        try await eventually("the log is away") { node.problems.first?.contains("nobody answers") ?? false }
        #expect(node.refusals.isEmpty)
    }

    @Test("a node without a file reports a trimmed log before it answers a request")
    func trimmedBefore() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 5)
        try await lab.log.append((0..<40).map { writer.event(at: $0) }, key: "todo", to: 0)
        lab.log.trim(0, before: 30)
        let position = StoredPosition(
            next: 0,
            read: 0,
            waiting: [:],
            phase: .seeds,
            last: nil,
            seedsEnd: 0,
            oldestEvent: 0,
            lastBarrier: .none
        )
        let error = #expect(throws: LogError.self) {
            try TailVerifier.resuming(position, partition: 0, of: lab.log, lab.log.bounds(0))
        }
        #expect(error?.code == .truncated)
    }

    @Test("a log that is written again while the node reads it is diverged by the next record's witness, for good")
    func rewrittenWhileReading() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 1)
        let node = try lab.node()
        try await lab.log.append((0..<20).map { writer.event(at: $0) }, key: "todo", to: 0)
        try await lab.reach(node, 0, 19)
        // A gateway with another history appends the next record.
        let value = writer.event(at: 20)
        let wrong = LogAppend(key: Array("todo".utf8), value: Array(value.utf8), witness: Witness(seq: 15, hash: 7))
        await withCheckedContinuation { done in lab.log.append([wrong], to: 0) { _ in done.resume() } }
        try await eventually("a refusal") { node.refusals == [.diverged] }
        node.close()
        let second = try lab.node()
        defer { second.close() }
        try await eventually("a refusal after a restart") { second.refusals == [.diverged] }
        #expect(second.positions == [19])
    }

    @Test("a node that missed a trim says how to recover, and continues from a peer's copy")
    func recoversFromPeer() async throws {
        let (lab, peer) = (try Lab(partitions: 1), try Lab(partitions: 1))
        try await folded(20, lab)
        var writer = Writer(seed: 5)
        try await lab.log.append((20..<40).map { writer.event(at: $0) }, key: "todo", to: 0)
        let whole = try SnapshotNode(log: lab.log, settings: peer.settings, logger: Logger(), metrics: Metrics())
        try await eventually("the peer has folded all") { whole.positions == [39] }
        whole.close()
        lab.log.trim(0, before: 30)
        let metrics = Metrics()
        let late = try lab.node(metrics: metrics)
        try await eventually("what to do") { late.problems.first?.contains("put a copy of the folder") ?? false }
        #expect(late.refusals == [.nodeBehind])
        #expect(late.logState == .truncated)
        #expect(late.problems.first?.hasPrefix("partition 0: truncated: ") == true, "\(late.problems)")
        #expect(shown(metrics, late) == [#"{state="truncated"}"#, #"{code="truncated",role="snapshot"}"#])
        late.close()

        let own = EpochFolders.path(of: lab.log.epoch, in: lab.folder.path)
        try FileManager.default.removeItem(atPath: own)
        let whereItIsWhole = EpochFolders.path(of: lab.log.epoch, in: peer.folder.path)
        try FileManager.default.copyItem(atPath: whereItIsWhole, toPath: own)
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([writer.event(at: 40)], key: "todo", to: 0)
        try await lab.reach(node, 0, 40)
    }

    @Test("a partition that is available again reports it without a new record")
    func reportsRecovery() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        let node = try lab.node()
        defer { node.close() }
        try await lab.reach(node, 0, 19)
        lab.log.lose(0, LogError(.logUnavailable, "there is no such topic"))
        try await eventually("a problem") { node.problems.first?.contains("no such topic") ?? false }
        #expect(node.logState == .unavailable)
        lab.log.lose(0, nil)
        try await eventually("none any more") { node.problems.isEmpty }
        #expect(node.logState == .ok)
    }

    @Test("a node does not compare trimmed records, and continues")
    func skipsTrimmedRecords() async throws {
        let lab = try Lab(partitions: 1)
        try await folded(20, lab)
        lab.log.trim(0, before: 20)
        let node = try lab.node()
        defer { node.close() }
        try await eventually("it stands where it stood") { node.positions == [19] && node.refusals.isEmpty }
        var writer = Writer(seed: 5)
        try await lab.log.append([writer.event(at: 20)], key: "todo", to: 0)
        try await lab.reach(node, 0, 20)
    }
}
