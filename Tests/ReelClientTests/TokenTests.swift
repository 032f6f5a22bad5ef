import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device with a token, and the app's server that renews the token.
@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    /// An app's own server. It gives one token after the other, or fails.
    private final class Office: Sendable {
        private let left: Mutex<[String?]>
        struct IsClosed: Error {}

        init(_ tokens: [String?]) { left = Mutex(tokens) }

        var source: SyncClient.TokenSource {
            { [self] in
                guard let token = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { throw IsClosed() }
                return token
            }
        }
    }

    @Test("a device without a token requests one before it sends anything") func requestsToken() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.heldPauses) = (["first"], [SyncClient.tokenMs]) }
        let client = try network.client(renewToken: Office(["first"]).source)
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        #expect(try await network.on { $0.said } == ["first"])
        await client.close()
    }

    /// The second request for a token fails. Enough time is left for another request.
    @Test("a device renews a token on its connection before the token expires") func aTokenIsRenewed() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.tokenS) = (["old", "new", "newest"], 60)
            (network.haste, network.heldPauses) = (1_000, [SyncClient.tokenMs])
        }
        let client = try network.client(token: "old", renewToken: Office(["new", nil, "newest"]).source)
        try await client.open("todo")
        try await eventually { (try? await network.on { $0.said.count >= 3 }) == true }
        #expect(try await network.on { Array($0.said.prefix(3)) } == ["old", "new", "newest"])
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test("a device sends an event with a new token after the first token does not allow it") func sendsWithNewToken()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.readers) = (["reader", "writer"], ["reader"])
            (network.tokenS, network.haste, network.heldPauses) = (60, 100, [SyncClient.tokenMs])
        }
        let (gate, opening) = AsyncStream.makeStream(of: Never.self)
        let client = try network.client(
            token: "reader",
            renewToken: {
                for await _ in gate {}
                return "writer"
            }
        )
        let notices = await client.notices()
        let publication = try await client.open("todo").publish(.insert("task", id: "1"))
        // The next token arrives after a node has refused an event under the first token.
        for await case .publishingPaused in notices { break }
        opening.finish()
        try await publication.outcome()
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test("a device reads a stream that its token did not allow once a token allows it") func aStreamThatA()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.strangers) = (["stranger", "reader"], ["stranger"])
            (network.tokenS, network.haste, network.heldPauses) = (60, 100, [SyncClient.tokenMs])
        }
        let (gate, opening) = AsyncStream.makeStream(of: Never.self)
        let client = try network.client(
            token: "stranger",
            renewToken: {
                for await _ in gate {}
                return "reader"
            }
        )
        let notices = await client.notices()
        let todo = try await client.open("todo")
        for await case .streamFailed in notices { break }
        opening.finish()
        try await todo.publish(.insert("task", id: "1")).outcome()
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test("a device tries a stream that its token did not allow again on the next connection") func aStreamThatAToken()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.strangers) = (["stranger", "reader"], ["stranger"])
            (network.haste, network.heldPauses) = (1_000, [SyncClient.tokenMs])
        }
        let client = try network.client(token: "stranger", renewToken: Office(["reader"]).source)
        let notices = await client.notices()
        let todo = try await client.open("todo")
        for await case .streamFailed in notices { break }
        try await network.on { network in
            network.tokens = ["reader"]
            for connection in network.connections { connection.end("reset") }
        }
        try await todo.publish(.insert("task", id: "1")).outcome()
        #expect(try await network.on { $0.said } == ["stranger", "stranger", "reader"])
        await client.close()
    }

    @Test("a device tries a stream beyond a node's limit again on the next connection") func aStreamBeyondA()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { ($0.refusal, $0.haste) = (ReelError(.limit, "too many subscriptions"), 1_000) }
        let client = try network.client()
        let notices = await client.notices()
        let todo = try await client.open("todo")
        for await case .streamFailed in notices { break }
        try await network.on { network in
            network.refusal = nil
            for connection in network.connections { connection.end("reset") }
        }
        try await todo.publish(.insert("task", id: "1")).outcome()
        await client.close()
    }

    @Test("a device replaces a token that was rejected on a connection with another token") func aTokenThatIs()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.tokenS) = (["old", "new"], 60)
            (network.haste, network.heldPauses) = (1_000, [SyncClient.tokenMs])
        }
        let client = try network.client(token: "old", renewToken: Office(["bad", "new"]).source)
        try await client.open("todo")
        try await eventually { (try? await network.on { $0.said.count >= 3 }) == true }
        #expect(try await network.on { Array($0.said.prefix(3)) } == ["old", "bad", "new"])
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test("a device renews a token once if it expired while the device slept")
    func expiredInSleep() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            (network.tokens, network.tokenS) = (["old"], 60)
            network.heldPauses = [SyncClient.tokenMs]
        }
        let client = try network.client(token: "old", renewToken: Office(["new"]).source)
        let stream = try await client.open("todo")
        try await stream.publish(.insert("task", id: "1")).outcome()
        try await network.on { network in
            (network.tokens, network.tokenS) = (["new"], nil)
            network.aheadMs += 3_600_000
            for connection in network.connections { connection.end("closed with 4401") }
        }
        try await stream.publish(.insert("task", id: "2")).outcome()
        // The device's clock decides nothing. The node says that the old token has expired.
        #expect(try await network.on { $0.said } == ["old", "old", "new"])
        await client.close()
    }

    @Test("a device does not send a rejected token again") func dropsRejectedToken() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.haste, $0.heldPauses) = (["good"], 1_000, [SyncClient.tokenMs]) }
        let client = try network.client(token: "bad", renewToken: Office(["worse", nil, "good"]).source)
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        #expect(try await network.on { $0.said } == ["bad", "worse", "good"])
        await client.close()
    }

    /// The answer arrives after its connection has ended.
    @Test("the next connection uses a token that arrives late") func aTokenThatComes() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.haste, $0.heldPauses) = (["slow"], 1_000, [SyncClient.tokenMs]) }
        let source = Slow(network)
        let client = try network.client(renewToken: { try await source.token() })
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        #expect(source.asked == 1, "one question at a time")
        #expect(try await network.on { $0.said } == ["slow"])
        await client.close()
    }

    @Test("a client calls renewToken again if it does not answer in time") func repeatsTokenRequest() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.heldPauses) = (["second"], [SyncClient.tokenMs]) }
        let asked = Mutex(0)
        let (silence, end) = AsyncStream.makeStream(of: Never.self)
        let client = try network.client(renewToken: {
            let count = asked.withLock { count in
                count += 1
                return count
            }
            // The first call ignores its cancellation.
            if count == 1 { await Task { for await _ in silence {} }.value }
            return count == 1 ? "first" : "second"
        })
        let notices = await client.notices()
        let publication = try await client.open("todo").publish(.insert("task", id: "1"))
        try await eventually { (try? await network.on { !$0.deadlines.isEmpty }) == true }
        try await network.on { $0.fireDeadlines(1) }
        try await publication.outcome()
        #expect(try await network.on { $0.said } == ["second"])
        await client.close()
        end.finish()
        #expect(await notices.contains(.tokenUnavailable(reason: "`renewToken` has not answered within 30 s")))
    }

    /// An app's server that gives its token once the client has tried for the third time.
    private final class Slow: Sendable {
        private let network: FakeNetwork
        private let count = Mutex(0)
        var asked: Int { count.withLock { $0 } }

        init(_ network: FakeNetwork) { self.network = network }

        func token() async throws -> String {
            count.withLock { $0 += 1 }
            try await eventually { (try? await self.network.on { $0.opened >= 3 }) == true }
            return "slow"
        }
    }
}
