import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A rejected event costs only the splices that can depend on its text.
@Suite(.timeLimit(.minutes(5))) struct RejectedTextTests {
    /// A reason why the stream rejects this device's offline write to the object `m/a`. `others` is the event of
    /// another device that causes the rejection, and `own` is the rejected write. A splice beyond the text is missing,
    /// because `publish` throws for it.
    enum Rejection: CaseIterable {
        case deleted, guarded, type, replaced, tooLarge

        var others: SyncEvent? {
            switch self {
            case .deleted: .delete("m", id: "a")
            case .guarded: .update("m", id: "a", ["n": 1])
            case .type: .update("m", id: "a", ["n": "no number"])
            case .replaced: .update("m", id: "a", ["title": "other"])
            case .tooLarge: nil
            }
        }

        var own: SyncChange {
            switch self {
            case .deleted: .update("m", id: "a", ["title": "new"])
            case .guarded: .update("m", id: "a", ["title": "new"]).guarded(["n": 0])
            case .replaced:
                .update(
                    "m",
                    id: "a",
                    operations: ["title": .splice([TextSplice(at: 5, removing: 0, inserting: "new")])]
                )
            case .type: .update("m", id: "a", ["title": "new"], operations: ["n": .increment(1)])
            case .tooLarge: .update("m", id: "a", ["title": .string(String(repeating: "x", count: 60 << 10))])
            }
        }
    }

    private static func letter(_ offset: Int, _ id: String = "b") -> SyncEvent {
        .update(
            "m",
            id: id,
            operations: ["text": .splice([TextSplice(at: Int64(offset), removing: 0, inserting: "x")])]
        )
    }

    private func stream(_ network: FakeNetwork) async throws -> (SyncClient, SyncStream) {
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        let make = SyncEvent.batch([
            .insert("m", id: "a", ["n": 0, "title": "title"]), .insert("m", id: "b", ["text": ""]),
        ])
        guard case .applied(0) = try await stream.publish(make).outcome() else { throw Wrong() }
        return (client, stream)
    }

    @Test(
        "offline: the fold applies 50 splices in another object after a rejected title",
        arguments: Rejection.allCases
    )
    func offline(rejection: Rejection) async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await stream(network)
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            if let others = rejection.others { network.author(others) }
        }
        let title = try await stream.publish(SyncEvent(rejection.own))
        for offset in 0..<50 { try await stream.publish(Self.letter(offset)) }
        try await network.on { network in
            if rejection == .tooLarge { network.frameBytes = 32 << 10 }
            network.down = []
        }
        let outcome = try await title.outcome()
        #expect(outcome.isLoss, "\(outcome)")
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.confirmed.object("m", id: "b")?["text"]?.string?.count == 50)
        await client.close()
    }

    @Test("online: the fold applies 120 letters although a title after the tenth letter is rejected")
    func online() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await stream(network)
        // The device does not hear yet that the other device has deleted the object.
        try await network.on { network in
            network.isSilent = true
            network.author(.delete("m", id: "a"))
        }
        var letters: [PublishHandle] = []
        for offset in 0..<120 {
            if offset == 10 { try await stream.publish(.update("m", id: "a", ["title": "new"])) }
            if offset == 60 {
                try await network.on { network in
                    network.isSilent = false
                    network.pushAll()
                }
            }
            letters.append(try await stream.publish(Self.letter(offset)))
        }
        for letter in letters { guard case .applied = try await letter.outcome() else { throw Wrong() } }
        #expect(try stream.confirmed.object("m", id: "b")?["text"]?.string?.count == 120)
        await client.close()
    }

    @Test("the fold applies new letters in a replaced text once the device has read the replacement")
    func typingRecovers() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await stream(network)
        try await network.on { network in
            network.isSilent = true
            network.author(.update("m", id: "b", ["text": "replaced "]))
        }
        var early: [PublishHandle] = []
        for offset in 0..<10 { early.append(try await stream.publish(Self.letter(offset))) }
        try await eventually { try await network.on { $0.log.count } == 12 }
        // The device reads only the other device's event. Its own letters have not returned yet.
        try await network.on { $0.push(upTo: 1) }
        try await eventually { try stream.object("m", id: "b")?["text"] == "replaced " }
        var late: [PublishHandle] = []
        for offset in 0..<10 { late.append(try await stream.publish(Self.letter(9 + offset))) }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        for letter in early { guard case .rejected(.stale, _) = try await letter.outcome() else { throw Wrong() } }
        for letter in late { guard case .applied = try await letter.outcome() else { throw Wrong() } }
        #expect(try stream.confirmed.object("m", id: "b")?["text"] == "replaced xxxxxxxxxx")
        await client.close()
    }
}
