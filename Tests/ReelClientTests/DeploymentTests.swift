import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device that meets nodes of its own deployment and nodes of another deployment.
@Suite(.timeLimit(.minutes(5))) struct DeploymentTests {
    private static let other = Deployment(0xb)

    private func count(_ network: FakeNetwork) async throws -> Double? {
        let value = try await network.on { network -> JSONValue? in
            let object = network.fold(StreamName("s")!).object(model: "m", id: "0")
            return object.map {
                SyncObject($0, readAt: ReadPosition(epoch: nil, seq: 0, withdrawals: .max))["n"] ?? .null
            }
        }
        guard case .number(let number)? = value else { return nil }
        return number
    }

    private func add(_ stream: SyncStream) async throws -> PublishHandle {
        try await stream.publish(.update("m", id: "0", operations: ["n": .increment(1)]))
    }

    @Test(
        "a device sends nothing to another deployment, reports why, and sends its queue after adoption",
        arguments: [(0, false), (0, true), (1, true), (5, false)]
    )
    func anotherDeployment(number: Int, isStartedAgain: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.number = 1 }
        var client = try network.client(nodes: ["a", "b"], store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "old")).outcome()
        #expect(client.status.deployment == "0000000000000001")
        try await network.on { network in
            network.down = ["a", "b"]
            for connection in network.connections { connection.end("reset") }
        }
        for id in 0..<3 { try await stream.publish(.insert("m", id: "\(id)", ["n": 0])) }
        if isStartedAgain {
            await client.close()
            client = try network.client(nodes: ["a", "b"], store: .file(path))
            stream = try await client.open("s")
        }
        let notices = await client.notices()
        try await network.on { network in
            network.makeAnew(Self.other, number: number)
            (network.down, network.greeted, network.subscribes) = ([], [], [])
        }
        for await notice in notices {
            guard case .otherDeployment(_, let found, let expected) = notice else { continue }
            #expect(found == Self.other.description && expected == "0000000000000001")
            break
        }
        // The device asks both nodes repeatedly, and sends nothing but `hello`.
        try await eventually { (try? await network.on { $0.greeted.count }) ?? 0 > 2 }
        let state = client.status
        let problem = try #require(state.problems.first)
        #expect(problem.code == .wrongDeployment && problem.stream == nil)
        #expect(problem.message.contains(Self.other.description) && problem.message.contains("0000000000000001"))
        #expect(state.otherDeployment == Self.other.description && state.connectedNode == nil)
        let said = try await network.on { ($0.log.count, $0.subscribes.count) }
        #expect(said == (0, 0))
        #expect(await stream.pendingCount == 3)

        try await client.adopt(deployment: try #require(state.otherDeployment))
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.objects("m").map(\.name.id) == ["0", "1", "2"], "the former state is not mixed in")
        let after = client.status
        #expect(after.problems.isEmpty && after.deployment == Self.other.description && after.otherDeployment == nil)
        await client.close()
        // The adoption is stored.
        client = try network.client(nodes: ["a", "b"], store: .file(path))
        stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "3")).outcome()
        #expect(client.status.deployment == Self.other.description)
        await client.close()
    }

    @Test("a device distinguishes a node of a former log from a node of another deployment")
    func formerLog() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        try await network.on { $0.number = 1 }
        try await client.open("s").publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.number = 0
            network.kill("a")
        }
        try await network.on { $0.down = [] }
        try await eventually { client.status.problems.contains { $0.code == .nodeBehind } }
        let state = client.status
        #expect(state.otherDeployment == nil && !state.problems.contains { $0.code == .wrongDeployment })
        try await network.on { $0.number = 1 }
        try await eventually { client.status.problems.isEmpty }
        await client.close()
    }

    @Test(
        "the fold applies a sent event once in a deployment restored from a backup or created empty",
        arguments: [0, 1, 2, 3],
        [false, true]
    )
    func sentOnceAfterRestore(kept: Int, isStartedAgain: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        // The log gets two more events. The device hears nothing about them.
        try await network.on { ($0.dropsAcks, $0.isSilent) = (true, true) }
        for added in 1...2 {
            _ = try await add(stream)
            try await eventually { (try? await network.on { $0.log.count }) == added + 1 }
        }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            (network.dropsAcks, network.isSilent) = (false, false)
            network.makeAnew(Self.other, keeping: kept)
        }
        _ = try await add(stream)
        if isStartedAgain {
            await client.close()
            client = try network.client(store: .file(path))
            stream = try await client.open("s")
        }
        // The device adopts the new deployment before it connects to a node of it. The user already knows the new
        // identifier.
        try await client.adopt(deployment: Self.other.description)
        try await network.on { $0.down = [] }
        try await eventually { await stream.pendingCount == 0 }
        // If the backup lacks the object, the updates have no object to change.
        #expect(try await count(network) == (kept == 0 ? nil : 3))
        let seen = try stream.object("m", id: "0")?["n"]
        #expect(seen == (kept == 0 ? nil : .number(3)))
        await client.close()
    }

    @Test("a device refuses splices and guards that depend on the former log, and sends later events")
    func refusesFormerBase() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["text": "old", "n": 0])).outcome()
        let seen = try #require(try stream.confirmed.object("m", id: "0")?.fields["n"]?.seq)
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            network.makeAnew(Self.other)
        }
        let splice = try await stream.publish(
            .update("m", id: "0", operations: ["text": .splice([TextSplice(at: 3, removing: 0, inserting: "er")])])
        )
        let guarded = try await stream.publish(SyncEvent(.update("m", id: "0", ["n": 1]).guarded(["n": seen])))
        let plain = try await stream.publish(.insert("m", id: "1"))
        try await client.adopt(deployment: Self.other.description)
        try await network.on { $0.down = [] }
        guard case .applied = try await plain.outcome() else { return #expect(Bool(false)) }
        for publication in [splice, guarded] {
            guard case .failed(let error) = try await publication.outcome() else { return #expect(Bool(false)) }
            #expect(error.code == .epochChanged)
        }
        #expect(try stream.objects("m").map(\.name.id) == ["1"])
        await client.close()
    }

    @Test("a device adopts the queue of a stream that is not open too, and sends it when the stream is opened")
    func closedStreams() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        for name in ["s", "t"] { try await client.open(name).publish(.insert("m", id: "0")).outcome() }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            network.makeAnew(Self.other)
        }
        for name in ["s", "t"] {
            try await client.open(name).publish(.insert("m", id: "1"))
            // The device has held this object, and the new deployment does not have it. The insert was never sent.
            try await client.open(name).publish(.insert("m", id: "0", ["a": 1]))
        }
        await client.close()
        client = try network.client(store: .file(path))
        try await client.adopt(deployment: Self.other.description)
        await client.close()
        try await network.on { $0.down = [] }
        client = try network.client(store: .file(path))
        for name in ["s", "t"] {
            let stream = try await client.open(name)
            try await eventually { await stream.pendingCount == 0 }
            let ids = try stream.objects("m").map(\.name.id)
            #expect(ids == ["0", "1"])
        }
        await client.close()
    }

    @Test("a device accepts nodes of an older build, which name no deployment, by their log number")
    func olderNodes() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.deployment = nil
            network.kill("a")
            network.down = []
        }
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(client.status.deployment == "0000000000000001")
        await client.close()
    }

    @Test("a device without a known deployment reports the deployment of nodes with an earlier log")
    func learnsOtherDeployment() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        try await network.on { ($0.deployment, $0.number) = (nil, 1) }
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.makeAnew(Self.other)
            network.kill("a")
        }
        try await stream.publish(.insert("m", id: "1"))
        try await network.on { $0.down = [] }
        try await eventually { client.status.otherDeployment == Self.other.description }
        #expect(client.status.problems.contains { $0.code == .nodeBehind })
        try await client.adopt(deployment: Self.other.description)
        try await eventually { await stream.pendingCount == 0 }
        await client.close()
    }

    @Test(
        "a device refuses a text that is not a deployment",
        arguments: ["", "b", "000000000000000B", "0000000000000000b"]
    )
    func noDeployment(_ text: String) async throws {
        let client = try FakeNetwork().client()
        let error = await #expect(throws: ReelError.self) { try await client.adopt(deployment: text) }
        #expect(error?.code == .badRequest)
        #expect(client.status.deployment == nil)
        await client.close()
    }
}
