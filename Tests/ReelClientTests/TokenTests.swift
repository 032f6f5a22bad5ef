import ReelCore
import Synchronization
import Testing

@testable import ReelClient

/// A device with a token, and who makes it another one.
@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    /// An app's own server: gives one token after the other, or fails.
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

    @Test func aDeviceWithoutATokenAsksForOneAndSaysNothingBefore() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.tokens = ["first"] }
        let client = try network.client(renewToken: Office(["first"]).source)
        try await client.open("todo").publish(.insert("task", "1")).fate()
        #expect(try await network.on { $0.said } == ["first"])
        await client.close()
    }

    /// The second time it does not come; there is still time to ask again.
    @Test func aTokenIsRenewedOnTheConnectionBeforeItExpires() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.tokenS, $0.haste) = (["old", "new", "newest"], 60, 1_000) }
        let client = try network.client(token: "old", renewToken: Office(["new", nil, "newest"]).source)
        try await client.open("todo")
        try await eventually { (try? await network.on { $0.said.count >= 3 }) == true }
        #expect(try await network.on { Array($0.said.prefix(3)) } == ["old", "new", "newest"])
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test func aTokenThatIsNotTakenOnAConnectionIsFollowedByAnother() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.tokenS, $0.haste) = (["old", "new"], 60, 1_000) }
        let client = try network.client(token: "old", renewToken: Office(["bad", "new"]).source)
        try await client.open("todo")
        try await eventually { (try? await network.on { $0.said.count >= 3 }) == true }
        #expect(try await network.on { Array($0.said.prefix(3)) } == ["old", "bad", "new"])
        #expect(try await network.on { $0.greeted.count } == 1, "the connection stays")
        await client.close()
    }

    @Test func aTokenThatIsNotTakenIsNotSaidAgain() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.haste) = (["good"], 1_000) }
        let client = try network.client(token: "bad", renewToken: Office(["worse", nil, "good"]).source)
        try await client.open("todo").publish(.insert("task", "1")).fate()
        #expect(try await network.on { $0.said } == ["bad", "worse", "good"])
        await client.close()
    }

    /// The answer comes when the connection that it was asked for has been given up.
    @Test func aTokenThatComesLateServesTheNextConnection() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.tokens, $0.haste) = (["slow"], 1_000) }
        let source = Slow(network)
        let client = try network.client(renewToken: { try await source.token() })
        try await client.open("todo").publish(.insert("task", "1")).fate()
        #expect(source.asked == 1, "one question at a time")
        #expect(try await network.on { $0.said } == ["slow"])
        await client.close()
    }

    /// Gives its token once the client has tried for the third time.
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
