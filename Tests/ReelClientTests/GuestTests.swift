import Foundation
import ReelCore
import ReelNet
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The SDK in an app's process.
@Suite(.timeLimit(.minutes(5))) struct GuestTests {
    @Test("a client ends with its last reference although loops over changes and notices run")
    func lastReference() async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let network = try FakeNetwork()
        weak var gone: SyncClient?
        let loops: [Task<Void, Never>]
        do {
            let client = try network.client(store: .file(path))
            gone = client
            let stream = try await client.open("s")
            try await stream.publish(.insert("m", id: "0")).outcome()
            let (changes, notices) = (await stream.changes(), await client.notices())
            loops = [Task { for await _ in changes {} }, Task { for await _ in notices {} }]
            try await eventually { await client.hasWaitingReader }
            try await eventually { await client.noticeFeeds.all.contains(where: \.isAwaited) }
        }
        for loop in loops { await loop.value }
        try await eventually { gone == nil }
        try await eventually { (try? await network.on { $0.connections.isEmpty }) == true }
        // The file is not in use any more.
        let next = try network.client(store: .file(path))
        #expect(try await next.open("s").object("m", id: "0") != nil)
        await next.close()
    }

    @Test("two loops over one value of changes get every batch")
    func twoLoops() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let changes = await stream.changes()
        let loops = (0..<2).map { _ in
            Task {
                var seen: Set<ObjectName> = []
                for await batch in changes {
                    seen.formUnion(batch.objects)
                    if seen.contains(ObjectName("m", id: "last")) { break }
                }
                return seen
            }
        }
        try await eventually { await client.waitingReaders == 2 }
        for id in ["1", "2", "last"] { try await stream.publish(.insert("m", id: id)).outcome() }
        for loop in loops {
            #expect(await loop.value.isSuperset(of: ["1", "2", "last"].map { ObjectName("m", id: $0) }))
        }
        await client.close()
    }

    @Test("two loops over one value of notices get every notice")
    func twoLoopsOverNotices() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a", "b"])
        let notices = await client.notices()
        let loops = (0..<2).map { _ in Task { await notices.reduce(into: [SyncNotice]()) { $0.append($1) } } }
        try await eventually { await client.noticeFeeds.all.count { $0.isAwaited } == 2 }
        try await client.open("s").publish(.insert("m", id: "0")).outcome()
        await client.close()
        let heard = [await loops[0].value, await loops[1].value]
        #expect(heard[0].count > 0 && heard[0] == heard[1])
    }

    @Test("a loop over changes continues where the previous loop stopped")
    func nextLoop() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let changes = await stream.changes()
        for id in ["1", "2"] {
            try await stream.publish(.insert("m", id: id)).outcome()
            var found = false
            for await batch in changes where batch.objects.contains(ObjectName("m", id: id)) {
                found = true
                break
            }
            #expect(found)
        }
        await client.close()
    }

    @Test("every call throws closed once the client is closed, and CancellationError only for a cancelled task")
    func closed() async throws {
        let network = try FakeNetwork()
        network.down = ["a"]
        let client = try network.client()
        let stream = try await client.open("s")
        let publication = try await stream.publish(.insert("m", id: "1"))
        await client.close()
        let calls: [@Sendable () async throws -> Void] = [
            { try await client.open("s") }, { try await client.open("t") }, { _ = try await client.streams() },
            { try await stream.publish(.insert("m", id: "2")) }, { try await stream.waitUntil(seq: 5) },
            { try await publication.acked() }, { try await publication.outcome() },
            { _ = try stream.object("m", id: "1") }, { _ = try stream.confirmed.objects("m") },
        ]
        for call in calls {
            let error = await #expect(throws: ReelError.self) { try await call() }
            #expect(error?.code == .closed)
        }
        let cancelled = Task {
            while !Task.isCancelled { await Task.yield() }
            try await publication.outcome()
        }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        for await _ in await stream.changes() { throw Wrong() }
        for await _ in await client.notices() { throw Wrong() }
    }

    @Test(
        "a client refuses an invalid node address at once, before it makes the store",
        arguments: [
            "", " ", "ws://a.example:1", "wss://a.example", "http://", "https://:7350", "http://a.example/v1",
            "http://a.example:7350/v1/socket", "http://a.example:0", "http://a.example:65536", "http://a.example:port",
            "http://ann@a.example:1", "http://a.example:1?x=1", "http://a b:1", "http://::1:7350", "a.example",
            "http://a.example:-1", "http://a.example:99999999999999999999",
        ]
    )
    func badAddress(node: String) throws {
        let path = temporaryPath()
        let error = #expect(throws: ReelError.self) {
            try SyncClient(nodes: ["http://127.0.0.1:7350", node], store: .file(path), transport: try NetTransport())
        }
        #expect(error?.code == .badAddress)
        #expect(error?.message.contains(node.debugDescription) == true)
        #expect(error?.message.contains("a port from 1 to 65535") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(
        "a client accepts valid node addresses",
        arguments: [
            [], ["http://a.example:7350"], ["https://a.example", "http://a.example/"], ["http://[::1]:7350"],
            ["127.0.0.1:7350"],
        ]
    )
    func validAddresses(nodes: [String]) async throws {
        let transport = try NetTransport()
        for node in nodes { try transport.check(node) }
        let client = try SyncClient(nodes: [], store: .memory, transport: transport)
        try await client.open("s").publish(.insert("m", id: "offline"))
        await client.close()
    }

    @Test("a file of authorities that is missing or holds no certificate is a bad address, with its path and its fault")
    func badAuthorities() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        for content in [nil, "no certificate"] {
            try content?.write(toFile: path, atomically: true, encoding: .utf8)
            let error = #expect(throws: ReelError.self) { try NetTransport(authorities: path) }
            #expect(error?.code == .badAddress)
            let fault = content == nil ? "No such file" : "holds no certificate"
            for text in [path.debugDescription, "expected the path of a PEM file", fault] {
                #expect(error?.message.contains(text) == true, "\(text)")
            }
        }
    }

    @Test("a store needs the path of a file", arguments: ["", "a\0b"])
    func badPath(path: String) throws {
        let error = #expect(throws: ReelError.self) {
            try SyncClient(nodes: [], store: .file(path), transport: try FakeNetwork())
        }
        #expect(error?.code == .badAddress)
    }

    @Test("a store with a relative path stays at its place when the process changes its working folder")
    func relativePath() async {
        await #expect(processExitsWith: .success) {
            let files = FileManager.default
            let folder = files.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? files.removeItem(at: folder) }
            #expect(chdir(folder.path) == 0)
            let client = try SyncClient(nodes: [], store: .file("app.reel"))
            let stream = try await client.open("s")
            try await stream.publish(.insert("m", id: "before"))
            #expect(chdir("/") == 0)
            try await stream.publish(.insert("m", id: "behind"))
            await client.close()
            let path = folder.appendingPathComponent("app.reel").path
            let next = try SyncClient(nodes: [], store: .file(path))
            #expect(try await next.open("s").objects("m").map(\.name.id) == ["before", "behind"])
            await next.close()
            #expect(!files.fileExists(atPath: "/app.reel"))
        }
    }
}

extension SyncClient {
    /// The number of readers of changes that wait for the next batch.
    fileprivate var waitingReaders: Int { opened.values.reduce(0) { $0 + $1.feeds.all.count(where: \.isAwaited) } }
}
