import Foundation
import ReelClient
import ReelLab
import ReelNet
import Synchronization
import Testing

/// A gateway ends under load: its clients go to another one, each at its own moment, and none of them meets an error.
@Suite(.timeLimit(.minutes(5))) struct MovingTests {
    @Test func clientsOfAGatewayThatLeavesGoToAnotherOneWithoutAnError() async throws {
        let effort = ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap(Int.init) ?? 1
        let count = min(2_000, 100 * effort)
        let folder = try TemporaryFolder(prefix: "reel-moving-")
        let log = "sqlite:\(folder.path)/log.sqlite"
        let other = try NodeProcess(["gateway", "--log", log], in: folder, name: "other")
        // It knows its port now. The clients know the one that leaves only: they go where they are sent.
        try other.restart(adding: ["--advertise", other.url])
        let leaving = try NodeProcess(["gateway", "--log", log], in: folder, name: "leaving")
        try await eventually("that each knows the other") {
            try await leaving.members("/v1/cluster").description.contains(other.url)
        }
        let transport = try NetTransport()
        let clients = try (0..<count).map { _ in
            try SyncClient(nodes: [leaving.url], store: .memory, transport: transport)
        }
        var notices: [AsyncStream<SyncNotice>] = []
        var streams: [SyncStream] = []
        for client in clients {
            notices.append(await client.notices)
            streams.append(try await client.open("todo", from: .all))
        }
        let writer = streams[0]
        try await writer.publish(.insert("m", "before")).fate()
        for stream in streams { try await eventually("it is there") { await stream.object("m", "before") != nil } }

        leaving.process.signal(SIGTERM)
        try await eventually("that it is not ready") {
            let answer = try? await leaving.ask("GET", "/readyz")
            return answer?.status != 200
        }
        // Published while they move, from one that moves too.
        let publications = try await during(writer)
        try await eventually("its end") { leaving.process.hasEnded() }
        #expect(leaving.process.end == .exited(0), "\(leaving.journal)")
        for publication in publications {
            guard case .applied = try await publication.fate() else { throw NeverCame(description: "applied") }
        }
        for stream in streams { try await eventually("all is there") { await stream.object("m", "49") != nil } }
        for client in clients { #expect(await client.connectedNode == other.url) }
        for client in clients { await client.close() }
        for notices in notices {
            var heard: [SyncNotice] = []
            for await notice in notices { heard.append(notice) }
            #expect(
                heard == [
                    .connected(node: leaving.url),
                    .disconnected(node: leaving.url, reason: "the node asked to go elsewhere"),
                    .connected(node: other.url),
                ]
            )
        }
    }

    private func during(_ stream: SyncStream) async throws -> [Publication] {
        var publications: [Publication] = []
        for id in 0..<50 {
            publications.append(try await stream.publish(.insert("m", "\(id)")))
            try await Task.sleep(for: .milliseconds(20))
        }
        return publications
    }
}
