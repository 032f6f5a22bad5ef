import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

@Suite(.timeLimit(.minutes(5))) struct EnqueueTests {
    @Test("enqueued events keep the order of each thread's calls, and publish comes after them")
    func order() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(nodes: [], store: .file(path))
        let stream = try await client.open("s")
        let events = 700
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            for event in 0..<events {
                                _ = try? stream.enqueue(.insert("t\(thread)", id: "\(1_000 + event)"))
                            }
                            continuation.resume()
                        }
                    }
                }
            }
        }
        let last = try stream.enqueue(.insert("last", id: "0"))
        try await stream.publish(.insert("last", id: "1"))
        let names = await stream.queue().flatMap { $0.event.changes.map { ObjectName($0.model, id: $0.id) } }
        for thread in 0..<4 {
            let ids = names.filter { $0.model == "t\(thread)" }.map(\.id)
            #expect(ids == (0..<events).map { "\(1_000 + $0)" })
        }
        #expect(names.suffix(2) == [ObjectName("last", id: "0"), ObjectName("last", id: "1")])
        #expect(try await last.stored().event == .insert("last", id: "0"))
        await client.close()
        let again = try network.client(nodes: [], store: .file(path))
        #expect(try await again.open("s").pendingCount == 4 * events + 2)
        await again.close()
    }

    @Test("a handle throws the error that publish throws, and the app gets a notice")
    func refused() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        let stream = try await client.open("s")
        var notices = await client.notices().makeAsyncIterator()
        try await stream.publish(.insert("m", id: "0", ["text": "ab"]))
        let bad = SyncEvent.update(
            "m",
            id: "0",
            operations: ["text": .splice([TextSplice(at: 9, removing: 0, inserting: "x")])]
        )
        let error = await #expect(throws: ReelError.self) { try await stream.enqueue(bad).stored() }
        #expect(error?.code == .range)
        guard case .notApplied("s", bad, .failed(let told))? = await notices.next() else { throw Wrong() }
        #expect(told.code == .range)
        await client.close()
    }

    @Test("a client that ends reports each enqueued event as stored or as closed")
    func end() async throws {
        for isReleased in [false, true] {
            let network = try FakeNetwork()
            let path = temporaryPath()
            defer { removeStore(path) }
            var client: SyncClient? = try network.client(nodes: [], store: .file(path))
            var stream = try await client?.open("s")
            var handles: [EnqueuedEvent] = []
            for id in 0..<5_000 {
                if let handle = try stream?.enqueue(.insert("m", id: "\(id)")) { handles.append(handle) }
            }
            if isReleased {
                (client, stream) = (nil, nil)
            } else {
                await client?.close()
                let error = #expect(throws: ReelError.self) { try stream?.enqueue(.insert("m", id: "late")) }
                #expect(error?.code == .closed)
            }
            var stored = 0
            for handle in handles {
                do {
                    try await handle.stored()
                    stored += 1
                } catch {
                    #expect(error as? ReelError == .closed)
                }
            }
            if !isReleased { #expect(stored == handles.count) }
            (client, stream) = (nil, nil)
            let again = try await network.reopened(path)
            #expect(try await again.open("s").pendingCount == stored)
            await again.close()
        }
    }

    @Test("enqueue throws limit when too many events are not stored yet")
    func limit() throws {
        let inbox = Inbox()
        let opening = StreamOpening(name: OverlaySimulation.name, number: 0)
        let item = Inbox.Item(event: EnqueuedEvent(.insert("m", id: "0")), opening: opening, base: nil)
        #expect(try inbox.add(item), "the first one asks the client")
        for _ in 1..<EnqueuedEvent.unstoredMax { #expect(try !inbox.add(item)) }
        let error = #expect(throws: ReelError.self) { try inbox.add(item) }
        #expect(error?.code == .limit)
        #expect(inbox.take(10).items.count == 10)
        #expect(throws: ReelError.self) { try inbox.add(item) }
        inbox.finished(10)
        #expect(try !inbox.add(item), "more were left, so the client asks itself")
    }

    @Test("a cancelled task stops waiting for a handle, and the event is stored")
    func cancelled() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        let stream = try await client.open("s")
        let handle = EnqueuedEvent(.insert("m", id: "0"))
        let task = Task { try await handle.stored() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await stream.enqueue(.insert("m", id: "1")).stored()
        #expect(try stream.object("m", id: "1") != nil)
        await client.close()
    }

    private struct Wrong: Error {}
}

extension FakeNetwork {
    /// Opens a store again after its former client has released it.
    fileprivate func reopened(_ path: String) async throws -> SyncClient {
        var client: SyncClient?
        try await eventually {
            client = try? self.client(nodes: [], store: .file(path))
            return client != nil
        }
        guard let client else { throw ReelError.closed }
        return client
    }
}
