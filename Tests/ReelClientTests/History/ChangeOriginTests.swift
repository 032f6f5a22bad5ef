import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The origins of changes of which several happen in one turn of the client.
@Suite(.timeLimit(.minutes(5))) struct ChangeOriginTests {
    @Test("an origin prints the names of its causes") func printed() {
        #expect("\([.own, .load] as ObjectChange.Origin)" == "[own, load]")
        #expect("\([] as ObjectChange.Origin)" == "[]")
    }

    /// A stream with the objects 1, 2 and 3, and a token for it.
    private struct Scene {
        let network: FakeNetwork
        let client: SyncClient
        let stream: SyncStream
        var token: ChangeToken

        init() async throws {
            network = try FakeNetwork()
            network.haste = 20
            client = try network.client()
            stream = try await client.open("s")
            try await network.on { network in
                for id in 1...3 { network.author(.insert("m", id: "\(id)", ["a": 0, "b": 0])) }
                network.pushAll()
            }
            try await stream.waitUntil(seq: 2)
            token = try await stream.changes(since: nil).token
        }

        /// Does several things in one turn. `publish` is as `SyncStream.publish`, and does not wait for the turn's end.
        func turn(_ body: @escaping @Sendable (FakeNetwork, _ publish: (SyncEvent) throws -> Void) throws -> Void)
            async throws
        {
            let stream = stream
            let result = try await network.on { network in
                let turns = stream.client.assumeIsolated { $0.turns }
                let result = Result {
                    try body(network) { event in
                        try stream.client.assumeIsolated { _ = try $0.accept(event, to: stream.opening, base: nil) }
                    }
                }
                #expect(stream.client.assumeIsolated { $0.turns } == turns)
                return result
            }
            try result.get()
        }

        /// Publishes an event that the log takes, and that the device does not get back yet.
        func publishSilently(_ event: SyncEvent) async throws {
            try await network.on { $0.isSilent = true }
            let head = try await network.on { $0.head }
            try await stream.publish(event)
            try await eventually { try await network.on { $0.head > head } }
        }

        /// Returns the origins since the last call, by id.
        mutating func origins() async throws -> [String: ObjectChange.Origin] {
            let changes = try await stream.changes(since: token)
            token = changes.token
            #expect(!changes.isReset)
            return Dictionary(uniqueKeysWithValues: changes.objects.map { ($0.name.id, $0.origin) })
        }
    }

    @Test("an own write in the turn that confirms an earlier own event is own alone") func confirmed() async throws {
        var scene = try await Scene()
        try await scene.publishSilently(.update("m", id: "1", ["a": 1]))
        #expect(try await scene.origins() == ["1": .own])
        try await scene.turn { network, publish in
            network.isSilent = false
            network.pushAll()
            try publish(.update("m", id: "1", ["a": 2]))
        }
        #expect(try await scene.origins() == ["1": .own])
        #expect(try scene.stream.object("m", id: "1")?["a"] == 2)
        await scene.client.close()
    }

    @Test("own and remote changes of one turn are both named, for each object its own") func mixed() async throws {
        var scene = try await Scene()
        try await scene.turn { network, publish in
            network.author(.update("m", id: "1", ["a": 1]))
            network.author(.update("m", id: "2", ["a": 1]))
            network.pushAll()
            try publish(.update("m", id: "1", ["b": 2]))
            try publish(.update("m", id: "3", ["b": 2]))
        }
        #expect(try await scene.origins() == ["1": [.own, .remote], "2": .remote, "3": .own])
        // The confirmations of these own events are no changes.
        try await eventually { await scene.stream.pendingCount == 0 }
        #expect(try await scene.origins().isEmpty)
        try await scene.publishSilently(.update("m", id: "1", ["a": 5]))
        _ = try await scene.origins()
        try await scene.turn { network, publish in
            network.author(.update("m", id: "1", ["b": 6]))
            network.author(.update("m", id: "3", ["b": 6]))
            network.isSilent = false
            network.pushAll()
            try publish(.update("m", id: "3", ["a": 6]))
        }
        // The own event of object 1 is only confirmed.
        #expect(try await scene.origins() == ["1": .remote, "3": [.own, .remote]])
        await scene.client.close()
    }

    @Test("the end of a rejected own event is no own change, also together with a further own write")
    func rejected() async throws {
        var scene = try await Scene()
        let seq = try #require(try scene.stream.confirmed.object("m", id: "2")?.fields["a"]?.seq)
        let guarded = SyncChange.update("m", id: "2", ["b": 7]).guarded(["a": seq])
        try await scene.network.on { network in
            network.isSilent = true
            network.author(.update("m", id: "2", ["a": 1]))
        }
        let batch = SyncEvent(batch: [.update("m", id: "1", ["a": 7]), guarded])
        let handle = try await scene.stream.publish(batch)
        #expect(try await scene.origins() == ["1": .own, "2": .own])
        try await eventually { try await scene.network.on { $0.head == 4 } }
        try await scene.turn { network, publish in
            network.isSilent = false
            network.pushAll()
            try publish(.update("m", id: "1", ["b": 8]))
        }
        #expect(try await scene.origins() == ["1": [.own, .withdrawn], "2": [.remote, .withdrawn]])
        #expect(try await handle.outcome() == .rejected(.guard, 4))
        await scene.client.close()
    }

    @Test("an event that the app withdraws is no own change, and one that its next event replaces is")
    func withdrawn() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let stream = try await client.open("s")
        var token = try await stream.changes(since: nil).token
        func origins() async throws -> [ObjectChange.Origin] {
            let changes = try await stream.changes(since: token)
            token = changes.token
            return changes.objects.map(\.origin)
        }
        try await stream.publish(.insert("m", id: "1", ["a": 1]))
        #expect(try await origins() == [.own])
        let id = try #require(await stream.queue().first?.id)
        try await stream.withdraw(id)
        #expect(try await origins() == [.withdrawn])
        let insert = SyncChange.insert("m", ["a": 1])
        let made = insert.id
        try await stream.publish(SyncEvent(insert))
        #expect(try await origins() == [.own])
        try await stream.publish(.update("m", id: made, ["b": 1]))
        try await stream.publish(.delete("m", id: made))
        #expect(try await origins() == [.own])
        #expect(await stream.pendingCount == 0, "the events have cancelled each other")
        await client.close()
    }

    @Test("an event of a clone of this device is remote") func cloned() async throws {
        var scene = try await Scene()
        let name = try #require(StreamName("s"))
        try await scene.turn { [stream = scene.stream] network, publish in
            let site = stream.client.assumeIsolated { $0.opened[name]?.outbox.site }
            let author = EventID(site: try #require(site), op: 0)
            network.append(name, SyncEvent.update("m", id: "1", ["a": 9]).encoded(base: network.head, author: author))
            network.pushAll()
            try publish(.update("m", id: "2", ["a": 9]))
        }
        #expect(try await scene.origins() == ["1": .remote, "2": .own])
        await scene.client.close()
    }

    @Test("an own write in the turn of a load has both origins if both changed the object", arguments: [true, false])
    func loaded(isSnapshot: Bool) async throws {
        var scene = try await Scene()
        try await scene.network.on { network in
            if isSnapshot {
                network.answers["a"] = { target, _ in
                    target.contains("/delta") ? (410, Array(#"{"code":"truncated"}"#.utf8)) : nil
                }
            }
            network.isSilent = true
            network.author(.update("m", id: "1", ["a": 1]))
            network.author(.update("m", id: "2", ["a": 1]))
            network.skip(Int(StreamSync.deltaFromSeqs))
            network.holdsAnswers = true
            // A held answer is not late, however slow the machine is.
            network.heldPauses = Set((0...StreamSync.answerDoublings).map { StreamSync.answerMs << Int64($0) })
            for connection in network.connections { connection.end("reset") }
        }
        // The answer with the state is let through in the turn of the own writes.
        while try await scene.network.on({ $0.holdsAnswers }) {
            try await eventually { try await scene.network.on { !$0.heldAnswers.isEmpty } }
            try await scene.turn { [stream = scene.stream] network, publish in
                let held = network.heldAnswers
                network.heldAnswers = []
                for answer in held { answer() }
                guard stream.client.assumeIsolated({ $0.opened[stream.opening]?.seq ?? .none }) > 4 else { return }
                (network.holdsAnswers, network.isSilent) = (false, false)
                try publish(.update("m", id: "1", ["b": 2]))
                try publish(.update("m", id: "3", ["b": 2]))
            }
        }
        #expect(try await scene.origins() == ["1": [.own, .load], "2": .load, "3": .own])
        await scene.client.close()
    }
}
