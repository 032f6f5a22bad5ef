import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Evicted streams: the received state leaves the device, and the queue stays.
@Suite(.timeLimit(.minutes(5))) struct EvictingTests {
    private let s = StreamName("s")!

    @Test("an evicted stream keeps its queue only, and is read again", arguments: [true, false])
    func evicts(isOpen: Bool) async throws {
        let network = try await FakeNetwork.with(objects: 20)
        let storage = MemoryStorage()
        let client = try network.client(store: .storage(StoppingStorage(storage)))
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 19)
        try await stream.publish(.update("m", id: "1", ["n": 2])).outcome()
        try await network.on { $0.kill("a") }
        let publication = try await stream.publish(.update("m", id: "2", ["n": 3]))
        try await stream.publish(.delete("m", id: "3"))
        let site = try storage.keys("s")
        let changes = await stream.changes()
        let moment = try stream.read { $0 }
        if !isOpen { await stream.close() }
        try await client.evict("s")
        for await _ in changes {}
        await #expect(throws: ReelError.self) { try await publication.outcome() }
        #expect(throws: ReelError.self) { try stream.objects("m") }
        #expect(try moment.objects("m").count == 19, "a moment that was lent stays")
        try await eventually { await client.isTidy }
        #expect(try storage.keys("oaitle").isEmpty)
        #expect(try storage.keys("q").count == 2 && storage.keys("s") == site)
        try await client.evict("s")
        try await client.evict("never")
        #expect(try await client.streams() == [.init(id: "s", pendingCount: 2)])
        let error = await #expect(throws: ReelError.self) { try await client.evict("no name!") }
        #expect(error?.code == .badStream)

        // Without a network the stream is there with its queue, and incomplete.
        let again = try await client.open("s")
        #expect(try again.read { ($0.isComplete, $0.seq) } == (false, -1))
        #expect(await again.queue().map(\.event) == [.update("m", id: "2", ["n": 3]), .delete("m", id: "3")])
        try await network.on { $0.down = [] }
        try await again.flush(deadline: .seconds(300))
        #expect(try again.confirmed.objects("m").count == 19)
        #expect(try again.object("m", id: "1")?["n"] == 2 && again.object("m", id: "2")?["n"] == 3)
        let name = s
        #expect(try await network.on { $0.fold(name).consumed } == 23)
        await client.close()
        let closed = await #expect(throws: ReelError.self) { try await client.evict("s") }
        #expect(closed == .closed)
    }

    @Test("a stream is evicted while its snapshot arrives", arguments: [true, false])
    func loading(isWritten: Bool) async throws {
        let network = try await FakeNetwork.with(objects: 6_000)
        let storage = MemoryStorage()
        let client = try network.client(store: .storage(StoppingStorage(storage)))
        if isWritten {
            try await network.on { network in
                network.cuts = [700_000]
                network.cutAnswer = { _ in try! client.assumeIsolated { try $0.evict("s") } }
            }
        } else {
            try await network.on { $0.holdsAnswers = true }
        }
        let stream = try await client.open("s")
        if !isWritten { try await eventually { try await network.on { !$0.heldAnswers.isEmpty } } }
        if !isWritten { try await client.evict("s") }
        try await eventually { (try? stream.objects("m")) == nil }
        try await network.on { $0.answerHeld() }
        try await eventually { await client.isTidy }
        #expect(try storage.keys("oaitle").isEmpty)
        let again = try await client.open("s")
        try await again.waitUntil(seq: 5_999)
        #expect(try again.objects("m").count == 6_000)
        await client.close()
    }

    @Test("a stream is evicted while a delta arrives, which leaves nothing") func delta() async throws {
        let network = try await FakeNetwork.with(objects: 10)
        let storage = MemoryStorage()
        let client = try network.client(store: .storage(StoppingStorage(storage)))
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 9)
        try await stream.publish(.insert("m", id: "own"))
        await stream.close()
        try await network.on { network in
            let text = JSONValue.string(String(repeating: "text ", count: 40))
            for id in 10..<6_000 { network.author(.insert("m", id: "\(id)", ["t": text])) }
            network.cuts = [1_200_000]
            network.cutAnswer = { _ in
                #expect((try? storage.keys("o").count) ?? 0 > 1_000, "a part of the delta is written")
                try! client.assumeIsolated { try $0.evict("s") }
            }
        }
        let again = try await client.open("s")
        try await eventually { (try? again.objects("m")) == nil }
        try await eventually { await client.isTidy }
        #expect(try storage.keys("oaitle").isEmpty)
        let last = try await client.open("s")
        try await last.flush(deadline: .seconds(300))
        #expect(try last.objects("m").count == 6_001)
        await client.close()
    }

    @Test("a device that is killed at any write of an eviction holds the stream or its queue, and the other streams")
    func killed() async throws {
        let network = try await FakeNetwork.with(objects: 2_500)
        let whole = MemoryStorage()
        let first = try network.client(store: .storage(StoppingStorage(whole)))
        let other = try await first.open("t")
        try await other.publish(.insert("m", id: "1")).outcome()
        let stream = try await first.open("s")
        try await stream.waitUntil(seq: 2_500)
        try await eventually { await first.isTidy }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        try await stream.publish(.update("m", id: "1", ["n": 2]))
        try await other.publish(.insert("m", id: "2"))
        await first.close()
        var (kills, wholes) = (0, 0)
        while kills < 100 {
            let storage = try whole.copy()
            let stopping = StoppingStorage(storage)
            let client = try network.client(store: .storage(stopping))
            _ = try await client.open("s")
            _ = try await client.open("t")
            try await eventually { await client.isTidy }
            stopping.stop(after: kills)
            try? await client.evict("s")
            try await eventually {
                if stopping.isOver { return true }
                return await client.isTidy
            }
            let isOver = stopping.isOver
            await client.close()
            let next = try network.client(store: .storage(StoppingStorage(storage)))
            let (again, there) = (try await next.open("s"), try await next.open("t"))
            let count = try again.confirmed.objects("m").count
            #expect(count == 0 || count == 2_500, "after \(kills) writes")
            for stream in [again, there] { #expect(await stream.pendingCount == 1) }
            #expect(try there.objects("m").count == 2 && there.confirmed.objects("m").count == 1)
            try await eventually { await next.isTidy }
            let objects = try storage.keys("o").count
            #expect(objects == count, "after \(kills) writes: the rest of the eviction is removed")
            if kills == 0 { #expect(count == 2_500) }
            wholes += count == 0 ? 0 : 1
            await next.close()
            if !isOver { break }
            kills += 1
        }
        #expect(kills > 3 && kills < 100 && (1...2).contains(wholes), "one commit, and steps of 1,000 objects")
        // The last client has a network again.
        try await network.on { $0.down = [] }
        let client = try network.client(store: .storage(whole))
        try await client.evict("s")
        let again = try await client.open("s")
        try await client.flush(deadline: .seconds(300))
        #expect(try again.object("m", id: "1")?["n"] == 2 && again.objects("m").count == 2_500)
        await client.close()
    }

    private func bytes(_ path: String) throws -> Int {
        try URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }

    @Test("the file shrinks when a large stream is evicted, while the client is open") func size() async throws {
        let network = try await FakeNetwork.with(objects: 20_000)
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 19_999)
        try await eventually { await client.isTidy }
        try await client.evict("s")
        try await eventually { await client.isTidy }
        let small = try bytes(path)
        #expect(small < 2 << 20, "\(small) bytes are left of a snapshot of some megabytes")
        await client.close()
    }

    @Test("the file shrinks although another stream is open that has only waiting events")
    func sizeBesideAnIdleStream() async throws {
        let network = try await FakeNetwork.with(objects: 10_000)
        let path = temporaryPath()
        defer { removeStore(path) }
        do {
            let client = try network.client(store: .file(path))
            try await client.open("t").publish(.insert("m", id: "1")).outcome()
            try await client.open("s").waitUntil(seq: 9_999)
            try await network.on { network in
                network.down = ["a"]
                network.kill("a")
            }
            for name in ["s", "t"] { try await client.open(name).publish(.insert("own", id: "1", ["n": 2])) }
            await client.close()
        }
        let client = try network.client(nodes: [], store: .file(path))
        try await client.open("s")
        let idle = try await client.open("t")
        let large = try bytes(path)
        try await client.evict("s")
        try await eventually { await client.isTidy }
        let small = try bytes(path)
        #expect(small < 1 << 20 && large > 1 << 20, "\(small) bytes are left of \(large)")
        #expect(try idle.objects("m").count == 1)
        await client.close()
    }

    @Test("memory, descriptors and the file stay small over 200 streams that come and go") func year() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        try await client.open("first").publish(.insert("m", id: "1")).outcome()
        try await client.evict("first")
        let descriptors = Self.descriptors(of: path)
        var largest = 0
        let text = JSONValue.string(String(repeating: "x", count: 20_000))
        for round in 0..<200 {
            let name = "year-\(round)"
            let visited = try await client.open(name, from: .beginning)
            try await visited.publish(.insert("m", id: "1", ["t": text])).outcome()
            if round.isMultiple(of: 2) { await visited.close() }
            try await client.evict(name)
            largest = max(largest, try bytes(path))
        }
        try await eventually { await client.isTidy }
        let fileBytes = try bytes(path)
        #expect(fileBytes < 2 << 20 && largest < 8 << 20, "\(fileBytes) bytes, \(largest) in between")
        #expect(Self.descriptors(of: path) <= descriptors + 2)
        #expect(try await client.streams().count == 201)
        try await network.on { network in
            #expect(network.connections.allSatisfy { $0.proven.isEmpty })
            client.assumeIsolated { client in
                #expect(client.opened.values.isEmpty && client.status.problems.isEmpty)
                #expect(client.store?.unusedGenerations.isEmpty == true)
                client.content.change { #expect($0.isEmpty) }
            }
        }
        for round in 0..<200 { try await client.forget("year-\(round)") }
        #expect(try await client.streams() == [.init(id: "first", pendingCount: 0)])
        await client.close()
    }

    /// The number of this process's descriptors of a file and those beside it.
    private static func descriptors(of path: String) -> Int {
        let folder = "/proc/self/fd"
        let all = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return all.count { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(number)")
            return target?.contains(path) == true
        }
    }
}
