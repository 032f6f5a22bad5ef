import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Apps that close a client or a stream from inside of what the client calls or reports.
@Suite(.timeLimit(.minutes(5))) struct ClosingInsideTests {
    private func opened(_ network: FakeNetwork) async throws -> (SyncClient, SyncStream) {
        let client = try network.client()
        return (client, try await client.open("s", from: .beginning))
    }

    @Test("a loop over notices ends after it has closed the client") func notices() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let notices = await client.notices()
        _ = try await client.open("s", from: .beginning)
        for await notice in notices {
            if case .connected = notice { await client.close() }
        }
        #expect(await client.connectedNode == nil)
    }

    @Test("a loop over statuses ends after it has closed the client, or the stream", arguments: [true, false])
    func statuses(closesClient: Bool) async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await opened(network)
        for await status in stream.statuses() where status.connection == .live {
            if closesClient { await client.close() } else { await stream.close() }
        }
        #expect(stream.status.connection == .closed)
        await client.close()
    }

    @Test("a loop over changes ends after it has closed the client, and the event stays in the store")
    func changes() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(nodes: [], store: .file(path))
        let stream = try await client.open("s", from: .beginning)
        let changes = await stream.changes()
        try await stream.publish(.insert("m", id: "0"))
        for await _ in changes { await client.close() }
        let again = try network.client(nodes: [], store: .file(path))
        #expect(try await again.open("s", from: .beginning).object("m", id: "0") != nil)
        await again.close()
    }

    @Test("a loop over the lines of the queue ends with an error after it has closed the client")
    func queueLines() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        let stream = try await client.open("s", from: .beginning)
        for id in 0..<600 { try await stream.publish(.insert("m", id: "\(id)")) }
        var count = 0
        let error = await #expect(throws: ReelError.self) {
            for try await _ in client.queueLines() {
                count += 1
                await client.close()
            }
        }
        #expect(error?.code == .closed)
        #expect(count < 600)
    }

    @Test("a client can be closed inside the renewal of its token") func renewal() async throws {
        let network = try FakeNetwork()
        network.tokens = ["never"]
        let box = ClientBox()
        let client = try network.client(
            renewToken: {
                await box.client?.close()
                return "late"
            }
        )
        await box.set(client)
        _ = try await client.open("s", from: .beginning)
        try await eventually("it is closed") { await client.isClosed }
        #expect(try await network.on { !$0.said.contains("late") }, "no token is sent after the end")
    }
}

/// Holds a client for a closure that is made before it.
private actor ClientBox {
    private(set) var client: SyncClient?
    func set(_ client: SyncClient) { self.client = client }
}
