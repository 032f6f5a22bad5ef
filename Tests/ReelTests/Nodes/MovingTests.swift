import Foundation
import ReelClient
import ReelLab
import ReelNet
import Synchronization
import TestSupport
import Testing

/// Tests a gateway that ends under load: its clients move to another one at different times,
/// and none of them gets an error.
@Suite(.timeLimit(.minutes(20))) struct MovingTests {
    /// The notices that the clients of the leaving gateway got, and those that they should get.
    private struct Move {
        var heard: [[SyncNotice]] = []
        var nodes: [String?] = []
        let leaving: String
        let other: String
        /// True if a client disconnected from a node that was silent for too long.
        var hasGivenUp = false
        /// The longest delay of this process or of a gateway.
        var standstill = Duration.zero

        /// True if a client disconnected from a silent node, and a process was delayed. Then the
        /// run says nothing about the move.
        var isHeldUp: Bool { hasGivenUp && standstill >= .seconds(1) }

        var expected: [SyncNotice] {
            [
                .connected(node: leaving),
                .disconnected(node: leaving, reason: "the node asked to go elsewhere"),
                .connected(node: other),
            ]
        }
    }

    @Test("clients of a gateway that leaves go to another one without an error") func clientsOfAGateway() async throws {
        var move = try await move()
        for _ in 0..<4 where move.isHeldUp { move = try await self.move() }
        for node in move.nodes { #expect(node == move.other) }
        for heard in move.heard { #expect(heard == move.expected, "the longest standstill was \(move.standstill)") }
    }

    private func move() async throws -> Move {
        let count = min(2_000, 100 * effort)
        let folder = try TemporaryFolder(prefix: "reel-moving-")
        let log = "sqlite:\(folder.path)/log.sqlite"
        let other = try NodeProcess(["gateway", "--log", log], in: folder, name: "other")
        // The gateway now knows its port and can advertise it. The clients know only the leaving
        // gateway, which sends them to this one.
        try other.restart(adding: ["--advertise", other.url])
        // The clients move within 6 s. A client that is still connected 18 s later was forgotten, not delayed.
        let leaving = try NodeProcess(["gateway", "--log", log, "--drain-ms", "24000"], in: folder, name: "leaving")
        try await eventually("that it knows where the other one is") {
            // The list may still contain the announcement from before the restart.
            let nodes = try await leaving.members("/v1/cluster")["nodes"] as? [[String: Any]] ?? []
            return nodes.contains { $0["advertised"] as? String == other.url }
        }
        let watch = StandstillWatch([leaving.port, other.port])
        defer { watch.stop() }
        let transport = try NetTransport()
        let clients = try (0..<count).map { _ in
            try SyncClient(nodes: [leaving.url], store: .memory, transport: transport)
        }
        var notices: [SyncNotices] = []
        var streams: [SyncStream] = []
        for client in clients {
            notices.append(await client.notices())
            streams.append(try await client.open("todo", from: .beginning))
        }
        let writer = streams[0]
        try await writer.publish(.insert("m", id: "before")).outcome()
        for stream in streams { try await eventually("it is there") { try stream.object("m", id: "before") != nil } }

        leaving.process.signal(SIGTERM)
        try await eventually("that it is not ready") {
            let answer = try? await leaving.ask("GET", "/readyz")
            return answer?.status != 200
        }
        // A client that moves itself publishes during the move.
        var published = 0
        repeat {
            let publication = try await writer.publish(.insert("m", id: "\(published)"))
            guard case .applied = try await publication.outcome() else { throw NeverCame(description: "applied") }
            published += 1
        } while !leaving.process.hasEnded()
        #expect(leaving.process.end == .exited(0), "\(leaving.logger)")
        let last = "\(published - 1)"
        for stream in streams { try await eventually("all is there") { try stream.object("m", id: last) != nil } }
        #expect(leaving.logger.contains(#"event="drain finished" reason="all have left""#), "\(leaving.logger)")
        var move = Move(leaving: leaving.url, other: other.url)
        move.standstill = await watch.end()
        for client in clients { move.nodes.append(client.status.connectedNode) }
        for client in clients { await client.close() }
        for notices in notices {
            var heard: [SyncNotice] = []
            for await notice in notices {
                heard.append(notice)
                guard case .disconnected(_, let reason) = notice else { continue }
                if reason.hasPrefix("no welcome within ") || reason.hasPrefix("silent for ") { move.hasGivenUp = true }
            }
            move.heard.append(heard)
        }
        return move
    }
}
