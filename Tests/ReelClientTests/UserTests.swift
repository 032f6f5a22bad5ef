import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device's store and the user that owns it.
@Suite(.timeLimit(.minutes(5))) struct UserTests {
    /// Returns a network with nodes that accept tokens of these users.
    private func network(_ users: String...) async throws -> FakeNetwork {
        let network = try FakeNetwork()
        let tokens = Set(users.map(FakeNetwork.token))
        try await network.on { $0.tokens = tokens }
        return network
    }

    private func code(_ body: () throws -> Void) -> ErrorCode? {
        do {
            try body()
            return nil
        } catch {
            return (error as? ReelError)?.code
        }
    }

    // MARK: Users of a store

    @Test("init throws for another user's store, for a missing user, and for a user of a store without one")
    func open() async throws {
        let network = try await network("ann", "bob")
        for (owner, visitor) in [("ann", "bob"), ("ann", nil), (nil, "ann")] as [(String?, String?)] {
            let path = temporaryPath()
            defer { removeStore(path) }
            let client = try network.client(store: .file(path, user: owner))
            try await client.open("todo").publish(.insert("task", id: "1"))
            await client.close()
            let error = #expect(throws: ReelError.self) { try network.client(store: .file(path, user: visitor)) }
            #expect(error?.code == .storeUser)
            let advice = visitor == nil ? "name the user of the store" : "`SyncClient.adopt(store:from:to:)`"
            #expect(error?.message.contains(advice) == true)
            let again = try network.client(store: .file(path, user: owner))
            #expect(try await again.open("todo").pendingCount == 1)
            await again.close()
        }
    }

    @Test("an empty store belongs to the first user that opens it, even if no stream is opened")
    func empty() async throws {
        let network = try await network("ann", "bob")
        let path = temporaryPath()
        defer { removeStore(path) }
        await (try network.client(store: .file(path))).close()
        await (try network.client(store: .file(path, user: "ann"))).close()
        #expect(code { _ = try network.client(store: .file(path, user: "bob")) } == .storeUser)
    }

    @Test(
        "a client refuses a user name that no token can have",
        arguments: ["", "a\nb", String(repeating: "x", count: 129)]
    )
    func names(name: String) throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        #expect(code { _ = try network.client(store: .file(path, user: name)) } == .storeUser)
        #expect(code { try SyncClient.adopt(store: path, from: nil, to: name) } == .storeUser)
        #expect(!FileManager.default.fileExists(atPath: path), "no file is made")
    }

    @Test("init throws for a token of a user other than the store's, before it makes the file")
    func tokenAtInit() async throws {
        let network = try await network("ann", "bob")
        let path = temporaryPath()
        defer { removeStore(path) }
        for token in [FakeNetwork.token("bob"), "no token", "a.b.c", "", FakeNetwork.token("")] {
            let error = code { _ = try network.client(store: .file(path, user: "ann"), token: token) }
            #expect(error == .storeUser, "\(token)")
        }
        #expect(code { _ = try network.client(store: .file(path), token: "no token") } == .storeUser)
        #expect(code { _ = try network.client(store: .file(path), renewToken: { "" }) } == .storeUser)
        #expect(!FileManager.default.fileExists(atPath: path))
        // If the app names no user, the token's user counts.
        await (try network.client(store: .file(path), token: FakeNetwork.token("ann"))).close()
        #expect(code { _ = try network.client(store: .file(path), token: FakeNetwork.token("bob")) } == .storeUser)
        await (try network.client(store: .file(path, user: "ann"), renewToken: { "" })).close()
    }

    @Test("a store that another process has open is busy, whatever the user")
    func twoProcesses() async throws {
        let network = try await network("ann", "bob")
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path, user: "ann"))
        try await client.open("todo").publish(.insert("task", id: "1"))
        for user in ["ann", "bob"] {
            let error = #expect(throws: ReelError.self) { try network.client(store: .file(path, user: user)) }
            #expect(error?.code == .storeBusy)
            #expect(throws: ReelError.self) { try SyncClient.adopt(store: path, from: "ann", to: "bob") }
        }
        #expect(try await client.open("todo").pendingCount == 1)
        await client.close()
    }

    // MARK: Tokens that a node gets

    @Test("a client never sends a token of another user that renewToken returns")
    func renewedToken() async throws {
        let network = try await network("ann", "bob")
        let path = temporaryPath()
        defer { removeStore(path) }
        let (ann, bob) = (FakeNetwork.token("ann"), FakeNetwork.token("bob"))
        let tokens = Turns([bob, "nonsense", ann, bob, ann])
        try await network.on { ($0.haste, $0.tokenS, $0.heldPauses) = (1_000, 60, [SyncClient.tokenMs]) }
        let client = try network.client(store: .file(path, user: "ann"), renewToken: { await tokens.next() })
        let notices = await client.notices()
        await tokens.begin()
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        try await eventually { (try? await network.on { $0.said.count >= 2 }) == true }
        let said = Set(try await network.on { $0.said })
        #expect(said == [ann])
        await client.close()
        var wrong: [SyncNotice] = []
        for await notice in notices { if case .wrongUser = notice { wrong.append(notice) } }
        let other = SyncNotice.wrongUser(expected: "ann", found: "bob")
        #expect(wrong.prefix(3) == [other, .wrongUser(expected: "ann", found: nil), other])
    }

    @Test("a client without a store belongs to the user of its first token")
    func memory() async throws {
        let network = try await network("ann", "bob")
        let (ann, bob) = (FakeNetwork.token("ann"), FakeNetwork.token("bob"))
        let tokens = Turns([ann, bob, ann])
        try await network.on { ($0.haste, $0.tokenS, $0.heldPauses) = (1_000, 60, [SyncClient.tokenMs]) }
        let client = try network.client(renewToken: { await tokens.next() })
        let notices = await client.notices()
        await tokens.begin()
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        try await eventually { (try? await network.on { $0.said.count >= 2 }) == true }
        #expect(Set(try await network.on { $0.said }) == [ann])
        await client.close()
        #expect(await notices.contains(.wrongUser(expected: "ann", found: "bob")))
    }

    // MARK: A site of another author name

    /// Publishes an event that the log has, and `lost` events that do not arrive.
    private func begin(_ network: FakeNetwork, _ store: SyncClient.Store, token: String?, lost: Int) async throws {
        let client = try network.client(store: store, token: token)
        let stream = try await client.open("todo")
        try await stream.publish(.insert("task", id: "begun")).outcome()
        if lost > 0 {
            try await network.on { $0.losesPublishes = true }
            for number in 0..<lost { try await stream.publish(.insert("lost", id: "\(number)")) }
            let base = try await network.on { $0.opened }
            try await eventually { (try? await network.on { $0.opened > base }) == true }
        }
        await client.close()
        try await network.on { $0.losesPublishes = false }
    }

    private func expect(
        _ expected: [String],
        _ network: FakeNetwork,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let found = try await outcomes(network)
        #expect(found == expected, sourceLocation: sourceLocation)
    }

    /// Returns the outcome and the author name of each event of the log.
    private func outcomes(_ network: FakeNetwork) async throws -> [String] {
        try await network.on { network in
            var fold = Fold(stream: StreamName("todo")!, partition: 0, epoch: network.epoch)
            var event = ParsedEvent()
            return network.log.enumerated().map { seq, value in
                value.withUnsafeBytes { value in
                    guard (try? event.parse(value)) != nil else { return "no event" }
                    let by = event.by.map { String(decoding: value[$0], as: UTF8.self) } ?? "nobody"
                    return "\(by) \(fold.apply(event, value, seq: Seq(seq)))"
                }
            }
        }
    }

    @Test("after a rename, a device settles the events that the stream has, and sends the others under the new name")
    func adopt() async throws {
        let network = try await network("ann", "anna")
        let path = temporaryPath()
        defer { removeStore(path) }
        // The stream has the second event, and the device has not read it.
        let client = try network.client(store: .file(path, user: "ann"), token: FakeNetwork.token("ann"))
        let stream = try await client.open("todo")
        try await stream.publish(.insert("counter", id: "1", ["n": 0])).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent) = (true, true) }
        try await stream.publish(.update("counter", id: "1", operations: ["n": .increment(1)]))
        try await eventually { (try? await network.on { $0.head >= 1 }) == true }
        try await network.on { $0.kill("a") }
        for _ in 0..<3 { try await stream.publish(.update("counter", id: "1", operations: ["n": .increment(1)])) }
        await client.close()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.down) = (false, false, []) }

        let typo = path + "-typo"
        #expect(code { try SyncClient.adopt(store: typo, from: nil, to: "anna") } == .storeFailed)
        #expect(!FileManager.default.fileExists(atPath: typo))
        let wrong = #expect(throws: ReelError.self) { try SyncClient.adopt(store: path, from: "bob", to: "anna") }
        #expect(wrong?.code == .storeUser)
        let text = #"found `from: "bob"`, expected `from: "ann"`: the store belongs to the user "ann""#
        #expect(wrong?.message == text)
        #expect(try SyncClient.adopt(store: path, from: "ann", to: "anna") == 2, "the last three are one event")
        #expect(try SyncClient.adopt(store: path, from: "ann", to: "anna") == 2, "once more does nothing")
        #expect(code { _ = try network.client(store: .file(path, user: "ann")) } == .storeUser)

        let anna = try network.client(store: .file(path, user: "anna"), token: FakeNetwork.token("anna"))
        let notices = await anna.notices()
        let renamed = try await anna.open("todo")
        try await eventually { await renamed.pendingCount == 0 }
        #expect(try renamed.confirmed.object("counter", id: "1")?["n"] == 4)
        await anna.close()
        try await expect(["ann applied", "ann applied", "anna applied"], network)
        let left = await notices.reduce(into: [[Int]]()) { left, notice in
            if case .leftSite(_, _, let consumed, let moved, let unknown) = notice {
                left.append([consumed, moved, unknown])
            }
        }
        #expect(left == [[0, 0, 0]], "the snapshot had settled what the stream has")
    }

    @Test("a device does not resend unconfirmed events of its former user name, and notifies the app")
    func formerUserName() async throws {
        let network = try await network("ann", "anna")
        let path = temporaryPath()
        defer { removeStore(path) }
        try await begin(network, .file(path, user: "ann"), token: FakeNetwork.token("ann"), lost: 2)
        try SyncClient.adopt(store: path, from: "ann", to: "anna")
        let client = try network.client(store: .file(path, user: "anna"), token: FakeNetwork.token("anna"))
        let notices = await client.notices()
        let stream = try await client.open("todo")
        try await stream.publish(.insert("task", id: "new")).outcome()
        try await expect(["ann applied", "anna applied"], network)
        await client.close()
        var (lost, left) = ([ErrorCode](), [Int]())
        for await notice in notices {
            if case .notApplied(_, _, .unknown(let error)) = notice { lost.append(error.code) }
            if case .leftSite(_, _, let consumed, let moved, let unknown) = notice {
                left = [consumed, moved, unknown]
            }
        }
        #expect(lost == [.foreign, .foreign])
        #expect(left == [0, 0, 2])
    }

    @Test("a site that the stream does not have yet moves to the new name: no event is lost or applied twice")
    func unbegunSite() async throws {
        let network = try await network("ann", "anna")
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.losesPublishes = true }
        let ann = try network.client(store: .file(path, user: "ann"), token: FakeNetwork.token("ann"))
        try await ann.open("todo").publish(.insert("task", id: "1"))
        try await eventually { (try? await network.on { $0.opened > 1 }) == true }
        await ann.close()
        try await network.on { $0.losesPublishes = false }
        try SyncClient.adopt(store: path, from: "ann", to: "anna")
        let anna = try network.client(store: .file(path, user: "anna"), token: FakeNetwork.token("anna"))
        let stream = try await anna.open("todo")
        try await eventually { await stream.pendingCount == 0 }
        try await expect(["anna applied"], network)
        // A gateway that was away appends the event that ann's connection had sent.
        try await network.on { network in
            let late = String(decoding: network.log[0], as: UTF8.self).replacing(#""by":"anna""#, with: #""by":"ann""#)
            network.append(StreamName("todo"), Array(late.utf8))
            network.pushAll()
        }
        try await stream.publish(.insert("task", id: "2")).outcome()
        try await expect(["anna applied", "ann foreign", "anna applied"], network)
        await anna.close()
    }

    @Test("a late copy under the former name that comes before the new one settles the event")
    func lateCopyFirst() async throws {
        let network = try await network("ann", "anna")
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.losesPublishes = true }
        let ann = try network.client(store: .file(path, user: "ann"), token: FakeNetwork.token("ann"))
        let site = try await { () in
            try await ann.open("todo").publish(.insert("task", id: "1"))
            try await eventually { (try? await network.on { $0.opened > 1 }) == true }
            return try await network.on { _ in ann.assumeIsolated { $0.opened[StreamName("todo")!]!.outbox.site } }
        }()
        await ann.close()
        try SyncClient.adopt(store: path, from: "ann", to: "anna")
        let late = #"{"base":-1,"by":"ann","id":"1","model":"task","op":0,"site":"\#(site)","type":"insert"}"#
        try await network.on { ($0.losesPublishes, $0.late) = (false, [Array(late.utf8)]) }
        let anna = try network.client(store: .file(path, user: "anna"), token: FakeNetwork.token("anna"))
        let stream = try await anna.open("todo")
        try await eventually { await stream.pendingCount == 0 }
        try await stream.publish(.insert("task", id: "2")).outcome()
        try await expect(["ann applied", "anna foreign", "anna applied"], network)
        #expect(try stream.confirmed.objects("task").count == 2)
        await anna.close()
    }

    @Test("a device continues under a new site when nodes gain or lose keys, without useless appends")
    func nodesChangeKeys() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        for (number, hasKeys) in [false, true, true, false].enumerated() {
            let token = FakeNetwork.token("ann")
            try await network.on { $0.tokens = hasKeys ? [token] : nil }
            let seed = UInt64(number)
            let client = try network.client(store: .file(path, user: "ann"), token: token, seed: seed)
            let stream = try await client.open("todo")
            try await stream.publish(.insert("task", id: "\(number)")).outcome()
            await client.close()
        }
        try await expect(["nobody applied", "ann applied", "ann applied", "nobody applied"], network)
    }

    @Test("a device appends a queue under another user's site at most once, however often it reconnects")
    func foreignSiteQueue() async throws {
        let network = try await network("ann")
        let client = try network.client(token: FakeNetwork.token("ann"))
        let stream = try await client.open("todo")
        let site = try await network.on { _ in client.assumeIsolated { $0.opened[StreamName("todo")!]!.outbox.site } }
        // The log gets the other user's event before this device has read it.
        let other = #"{"base":-1,"by":"bob","op":0,"site":"\#(site)","type":"noop"}"#
        try await network.on { $0.late = [Array(other.utf8)] }
        for id in 0..<10 { try await stream.publish(.insert("task", id: "\(id)")) }
        for _ in 0..<5 {
            let count = try await network.on { network in
                for connection in network.connections { connection.end("reset") }
                return network.opened
            }
            try await eventually { (try? await network.on { $0.opened > count }) == true }
        }
        try await eventually { await stream.pendingCount == 0 }
        let log = try await outcomes(network)
        #expect(log.filter { $0 == "ann applied" }.count == 10)
        #expect(log.filter { $0 == "ann foreign" }.count <= 10, "\(log)")
        await client.close()
    }
}

/// Gives one token after the other once it has begun, and then the last token repeatedly.
private actor Turns {
    private var tokens: [String]
    private var hasBegun = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ tokens: [String]) { self.tokens = tokens }

    /// Lets `next` return.
    func begin() {
        hasBegun = true
        for caller in waiting { caller.resume() }
        waiting = []
    }

    func next() async -> String {
        if !hasBegun { await withCheckedContinuation { waiting.append($0) } }
        return tokens.count > 1 ? tokens.removeFirst() : tokens[0]
    }
}

extension FakeNetwork {
    /// Returns a token of a user. A device can read only this part of it.
    static func token(_ subject: String) -> String {
        var claims = Array(#"{"sub":"#.utf8)
        claims.append(quoted: subject)
        claims += Array(#","reel":{"read":["*"]}}"#.utf8)
        return [Array(#"{"alg":"none"}"#.utf8), claims, [0]].map(Base64URL.encode).joined(separator: ".")
    }
}
