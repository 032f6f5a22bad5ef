import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Cancelled waits and ended readers leave no resources in use.
@Suite(.timeLimit(.minutes(5))) struct LettingGoTests {
    @Test("a cancelled task stops waiting") func aTaskThatIs() async throws {
        let network = try FakeNetwork()
        network.down = ["a"]
        let client = try network.client()
        let stream = try await client.open("s")
        let publication = try await stream.publish(.insert("m", id: "0"))
        let waits: [@Sendable () async throws -> Void] = [
            { _ = try await publication.acked() }, { _ = try await publication.outcome() },
            { try await stream.waitUntil(seq: 7) },
        ]
        for wait in waits {
            // One task is cancelled before it waits. The other task may already wait.
            let late = Task { try await wait() }
            let early = Task {
                while !Task.isCancelled { await Task.yield() }
                try await wait()
            }
            for task in [early, late] {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
        }
        let waiting = Task { try await stream.waitUntil(seq: 0) }
        try await network.on { $0.down = [] }
        try await waiting.value
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        await client.close()
    }

    @Test("a client does not keep a reader without references") func aReaderThatWas() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        weak var feed: Feed<ObjectChangeBatch>?
        do {
            let changes = await stream.changes()
            feed = changes.makeAsyncIterator().lease.feed
            #expect(feed != nil)
            _ = changes
        }
        // A caller on another thread may keep a reference for a moment.
        while feed != nil { await Task.yield() }
        var reader = await stream.changes().makeAsyncIterator()
        try await stream.publish(.insert("m", id: "0")).outcome()
        #expect(await reader.next()?.objects == [ObjectName("m", id: "0")], "the others go on")
        await client.close()
    }

    @Test("a reader of changes continues after an earlier reader is cancelled") func nextReaderContinues() async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let changes = await stream.changes()
        let first = Task { () -> ObjectChangeBatch? in
            var reader = changes.makeAsyncIterator()
            return await reader.next()
        }
        first.cancel()
        #expect(await first.value == nil)
        let reading = Task {
            for await batch in changes where batch.objects.contains(ObjectName("m", id: "0")) { return true }
            return false
        }
        try await eventually { await client.hasWaitingReader }
        try await stream.publish(.insert("m", id: "0")).outcome()
        #expect(await reading.value)
        await client.close()
        var reader = changes.makeAsyncIterator()
        while await reader.next() != nil {}
    }

    @Test("a client without references closes its connection") func closesUnreferenced() async throws {
        let network = try FakeNetwork()
        weak var gone: SyncClient?
        do {
            let client = try network.client()
            gone = client
            try await client.open("s").publish(.insert("m", id: "0")).outcome()
            #expect(try await network.on { $0.connections.count } == 1)
        }
        try await eventually { (try? await network.on { $0.connections.isEmpty }) == true }
        #expect(gone == nil)
    }

    @Test("a caller that waits gets closed when the last reference to the client ends") func unreferencedWaitEnds()
        async throws
    {
        let network = try FakeNetwork()
        network.down = ["a"]
        let publication: PublishHandle
        let notices: SyncNotices
        do {
            let client = try network.client()
            notices = await client.notices()
            publication = try await client.open("s").publish(.insert("m", id: "0"))
        }
        await #expect(throws: ReelError.closed) { try await publication.outcome() }
        for await notice in notices { guard case .disconnected = notice else { throw Wrong() } }
    }

    @Test("a client drops notice feeds that have no reader") func dropsUnreadNotices() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let kept = await client.notices()
        for _ in 0..<10 { _ = await client.notices() }
        try await client.open("s").publish(.insert("m", id: "0")).outcome()
        #expect(await client.noticeFeeds.all.count == 1)
        await client.close()
        #expect(await kept.contains(.connected(node: "a")))
    }
}

extension SyncClient {
    /// True if a reader of a stream's changes waits for the next batch.
    var hasWaitingReader: Bool { opened.values.contains { $0.feeds.all.contains(where: \.isAwaited) } }
}
