import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Forgotten streams: everything of a stream leaves the device.
@Suite(.timeLimit(.minutes(5))) struct ForgettingTests {

    private func offline(_ network: FakeNetwork) async throws {
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
    }

    @Test(
        "a stream without waiting events is forgotten, open or not, and is read from its beginning later",
        arguments: [true, false]
    )
    func forgets(isOpen: Bool) async throws {
        let network = try await FakeNetwork.with(objects: 10)
        let storage = MemoryStorage()
        let client = try network.client(store: .storage(StoppingStorage(storage)))
        let other = try await client.open("t")
        try await other.publish(.insert("m", id: "1")).outcome()
        let stream = try await client.open("s")
        try await stream.publish(.update("m", id: "1", ["n": 2])).outcome()
        let changes = await stream.changes()
        if !isOpen { await stream.close() }
        try await client.forget("s")
        try await client.forget("s")
        for await _ in changes {}
        let error = #expect(throws: ReelError.self) { try stream.objects("m") }
        #expect(error?.code == .closed)
        #expect(try await client.streams() == [.init(id: "t", pendingCount: 0)])
        try await eventually { await client.isTidy }
        #expect(try storage.keys("s").count == 1 && storage.keys("qol").isEmpty)
        #expect(try other.objects("m").count == 1)
        let again = try await client.open("s")
        try await again.publish(.insert("m", id: "10")).outcome()
        #expect(try again.objects("m").count == 11)
        let name = StreamName("s")!
        #expect(try await network.on { $0.fold(name).sites().count } == 3, "two of the device")
        let invalid = await #expect(throws: ReelError.self) { try await client.forget("") }
        #expect(invalid?.code == .badStream)
        await client.close()
        let closed = await #expect(throws: ReelError.self) { try await client.forget("s") }
        #expect(closed == .closed)
    }

    @Test("a stream with waiting events is forgotten only if they may be discarded", arguments: [true, false])
    func waiting(isOpen: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        let notices = await client.notices()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent) = (true, true) }
        let sent = try await stream.publish(.insert("m", id: "1"))
        try await eventually { try await network.on { $0.log.count } == 2 }
        try await offline(network)
        let first = try await stream.publish(.insert("m", id: "2"))
        let second = try await stream.publish(.update("m", id: "0", ["n": 1]))
        if !isOpen { await stream.close() }
        let error = await #expect(throws: ReelError.self) { try await client.forget("s") }
        #expect(error?.code == .storeWaits && error?.message.contains("3 own events that wait (s: 3)") == true)
        #expect(error?.message.hasSuffix("discard them with `forget(_:discardingQueue: true)`") == true)
        #expect(try await client.streams() == [.init(id: "s", pendingCount: 3)], "nothing has changed")
        if isOpen { #expect(try stream.objects("m").count == 3) }
        try await client.forget("s", discardingQueue: true)
        #expect(try await client.streams().isEmpty)
        if isOpen {
            for publication in [first, second] { #expect(try await publication.outcome() == .superseded) }
            guard case .unknown(let error) = try await sent.outcome() else { throw Wrong() }
            #expect(error.code == .closed)
            #expect(await notices.contains(.notApplied(stream: "s", sent.event, .unknown(error))))
        } else {
            await #expect(throws: ReelError.self) { try await sent.outcome() }
        }
        await client.close()
        // The event that a node has got is in the stream; the others are nowhere.
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.down) = (false, false, []) }
        let next = try network.client(store: .file(path))
        #expect(try await next.streams().isEmpty)
        let again = try await next.open("s")
        try await again.publish(.insert("m", id: "3")).outcome()
        #expect(try again.objects("m").map(\.name.id) == ["0", "1", "3"])
        await next.close()
    }

    @Test("an event is stored, or its publish throws, when the stream is forgotten at the same time")
    func concurrently() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        for _ in 0..<10 {
            let stream = try await client.open("s")
            let publications = await withTaskGroup(of: PublishHandle?.self) { group in
                for id in 0..<20 {
                    group.addTask {
                        let event = SyncEvent.insert("m", id: "\(id)")
                        if id.isMultiple(of: 2) { return try? await stream.publish(event) }
                        return try? await stream.enqueue(event).stored()
                    }
                }
                group.addTask {
                    try? await client.forget("s", discardingQueue: true)
                    return nil
                }
                return await group.reduce(into: [PublishHandle]()) {
                    if let publication = $1 { $0.append(publication) }
                }
            }
            for publication in publications { #expect(try await publication.outcome() == .superseded) }
            #expect(try await client.streams().isEmpty)
        }
        await client.close()
    }

    @Test("a device that is killed at any write of a forgetting holds the whole stream or nothing of it")
    func killed() async throws {
        let network = try await FakeNetwork.with(objects: 2_500)
        let whole = MemoryStorage()
        let first = try network.client(store: .storage(StoppingStorage(whole)))
        let (stream, other) = (try await first.open("s"), try await first.open("t"))
        try await stream.waitUntil(seq: 2_499)
        try await eventually { await first.isTidy }
        try await offline(network)
        for stream in [stream, other] { try await stream.publish(.insert("m", id: "new")) }
        await first.close()
        var (kills, wholes) = (0, 0)
        while kills < 100 {
            let storage = try whole.copy()
            let stopping = StoppingStorage(storage)
            let client = try network.client(store: .storage(stopping))
            _ = try await client.open("s")
            try await eventually { await client.isTidy }
            stopping.stop(after: kills)
            try? await client.forget("s", discardingQueue: true)
            try await eventually {
                if stopping.isOver { return true }
                return await client.isTidy
            }
            let isOver = stopping.isOver
            await client.close()
            let next = try network.client(store: .storage(StoppingStorage(storage)))
            let held = try await next.streams()
            #expect(held.last == .init(id: "t", pendingCount: 1))
            let isWhole = held.count == 2
            #expect(isWhole || kills > 0)
            #expect(held.dropLast() == (isWhole ? [.init(id: "s", pendingCount: 1)] : []))
            #expect(try await next.open("t").objects("m").count == 1)
            try await eventually { await next.isTidy }
            #expect(try storage.keys("o").count == (isWhole ? 2_500 : 0), "after \(kills) writes")
            #expect(try storage.keys("qptle").count { $0[8] == 1 } == (isWhole ? 3 : 0), "after \(kills) writes")
            wholes += isWhole ? 1 : 0
            await next.close()
            if !isOver { break }
            kills += 1
        }
        #expect(kills > 3 && kills < 100 && (1...2).contains(wholes))
    }
}
