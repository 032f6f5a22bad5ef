import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a node of both roles whose own state is incomplete, beside a snapshot node with complete state.
@Suite(.timeLimit(.minutes(5)))
struct OwnStateBehindTests {
    /// A state source that always refuses because its state is incomplete.
    private struct Behind: StateSource {
        func respond(to request: StateRequest, _ exchange: HTTPExchange) {
            exchange.respond(Problem(.nodeBehind, "the own state is a part").response)
        }

        func outcomes(
            of acks: [ServerFrame.Acked],
            in stream: StreamName,
            epoch: Epoch,
            withinMs: Int64,
            on loop: EventLoop,
            then: @escaping (Result<[AckOutcome], Problem>) -> Void
        ) { then(.failure(Problem(.nodeBehind, "the own state is a part"))) }

        var crowdedStreams: [CrowdedStream] { [] }
        var health: RoleHealth { RoleHealth(.snapshot, log: .ok, partitions: [PartitionHealth(seq: -1, goal: -1)]) }
        func loss(of partition: Int) -> ReelError? { nil }
        func canAnswer(_ request: StateRequest) -> Bool { false }
        func canAnswer(_ request: StreamListRequest) -> Bool { false }
        func canAnswer(_ request: DigestsRequest) -> Bool { false }
        func respond(to request: DigestsRequest, for access: Access, _ exchange: HTTPExchange) {
            exchange.respond(Problem(.nodeBehind, "the own state is a part").response)
        }
        func respond(to request: StreamListRequest, for access: Access, _ exchange: HTTPExchange) {
            exchange.respond(Problem(.nodeBehind, "the own state is a part").response)
        }
    }

    @Test("it asks the other node first, and answers itself what was passed on to it")
    func others() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-own-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try MemoryLog(partitions: 1)
        var common = NodeSettings.forTests
        common.announceMs = 20
        let peer = try SnapshotServer(log: log, settings: SnapshotSettings(folder: folder), common: common)
        let live = try LiveGateway(log, state: Behind()) { $0.node.announceMs = 20 }
        let target = "/v1/streams/todo/snapshot"
        try await eventually("the other node's state is answered") { try await live.get(target).status == 200 }
        let passed = try await live.ask("GET", target, headers: [PeerClient.passedHeader: "1"])
        #expect(passed.status == 503)
        #expect(String(decoding: passed.body, as: UTF8.self).contains("the own state is a part"))
        let digests = #"{"epoch":"\#(log.epoch)","streams":[{"stream":"todo","seq":-1}]}"#
        #expect(try await live.ask("POST", "/v1/digests", body: digests).status == 200)
        let passedDigests = try await live.ask(
            "POST",
            "/v1/digests",
            body: digests,
            headers: [PeerClient.passedHeader: "1"]
        )
        #expect(passedDigests.status == 503)
        let events = #"{"events":[{"type":"noop"}]}"#
        let published = try await live.ask("POST", "/v1/streams/todo/events?outcome=1", body: events)
        #expect(published.status == 200)
        #expect(String(decoding: published.body, as: UTF8.self).contains(#""outcome":"applied""#), "\(published)")
        peer.end.begin()
        await peer.waitUntilEnded()
        try await eventually("its own state is answered once the other node has left") {
            let answer = try await live.get(target)
            return answer.status == 503
                && String(decoding: answer.body, as: UTF8.self).contains("the own state is a part")
        }
        await live.end()
        log.close()
    }
}
