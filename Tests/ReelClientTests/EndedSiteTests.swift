import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device's site that ends with its account, or with a client that keeps no data.
@Suite(.timeLimit(.minutes(5))) struct EndedSiteTests {
    private let todo = StreamName("todo")!

    private func ends(_ network: FakeNetwork) async throws -> [Bool] {
        let name = todo
        return try await network.on { network in
            let sites = Set(
                network.log.compactMap { value -> Site? in
                    let text = value.withUnsafeBytes { JSONValue(parsing: $0) }?.object?["site"]?.string
                    return text.flatMap { Site($0) }
                }
            )
            let fold = network.fold(name)
            return sites.compactMap { fold.site($0) }.map { $0.end != .none }
        }
    }

    // MARK: An account

    @Test("an erased account ends its sites, also in streams that are not open, and leaves no file")
    func erase() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let first = try network.client(store: .file(path, user: "ann"))
        for name in ["todo", "other", "read"] {
            let stream = try await first.open(name)
            if name != "read" { try await stream.publish(.insert("task", id: "1")).outcome() }
        }
        await first.close()
        let client = try network.client(store: .file(path, user: "ann"))
        try await client.open("todo")
        #expect(try await client.signOut() == [])
        let lasts = try await network.on { network in
            zip(network.streams, network.log).compactMap { stream, value in
                String(decoding: value, as: UTF8.self).contains(#""last":true"#) ? stream?.description : nil
            }
        }
        #expect(lasts.sorted() == ["other", "todo"])
        for suffix in ["", "-wal", "-shm"] { #expect(!FileManager.default.fileExists(atPath: path + suffix)) }
        await #expect(throws: (any Error).self) { try await client.open("todo") }
        // Another user can now use the file's path.
        await (try network.client(store: .file(path, user: "bob"))).close()
    }

    @Test("a device erases an account with waiting events only if these events may be dropped")
    func waiting() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path, user: "ann"))
        let stream = try await client.open("todo")
        try await stream.publish(.insert("task", id: "1")).outcome()
        try await network.on { network in
            network.down = ["a"]
            for connection in network.connections { connection.end("reset") }
        }
        let publication = try await stream.publish(.insert("task", id: "2"))
        let error = await #expect(throws: ReelError.self) { try await client.signOut() }
        #expect(error?.code == .storeWaits)
        try await stream.publish(.insert("task", id: "3"))
        #expect(await stream.pendingCount == 2, "nothing has changed")
        try await network.on { $0.down = [] }
        _ = try? await client.signOut(ifWaiting: .erase)
        _ = try? await publication.outcome()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(
        "a device erases its account without a reachable node, and returns the streams that keep a site",
        arguments: [false, true]
    )
    func erasesOffline(hasNodes: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let first = try network.client(store: .file(path))
        try await first.open("todo").publish(.insert("task", id: "1")).outcome()
        await first.close()
        try await network.on { $0.down = ["a"] }
        let client = try network.client(nodes: hasNodes ? ["a"] : [], store: .file(path))
        #expect(try await client.signOut(deadline: .seconds(hasNodes ? 1 : 3_000)) == ["todo"])
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("a device that is killed after the last event of its site continues under another site")
    func killedAfterLastEvent() async throws {
        let network = try FakeNetwork()
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer { for path in [path, copy] { removeStore(path) } }
        let first = try network.client(store: .file(path))
        try await first.open("todo").publish(.insert("task", id: "1")).outcome()
        try await network.on { $0.dropsAcks = true }
        let eraser = Task { try await first.signOut(deadline: .seconds(1)) }
        try await eventually { try await ends(network) == [true] }
        for suffix in ["", "-wal"] {
            try? FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        _ = try? await eraser.value
        try await network.on { $0.dropsAcks = false }
        let client = try network.client(store: .file(copy))
        let stream = try await client.open("todo")
        let publication = try await stream.publish(.insert("task", id: "2"))
        guard case .applied = try await publication.outcome() else { throw NeverCame(description: "applied") }
        #expect(try await ends(network).sorted { !$0 && $1 } == [false, true])
        await client.close()
    }

    // MARK: A client without a store

    @Test("a client without a store ends its sites when it closes")
    func memory() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let reader = try await client.open("read")
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        try await eventually { await reader.seq >= 0 }
        await client.close()
        #expect(try await ends(network) == [true])
        #expect(try await network.on { $0.log.count } == 2, "nothing is said where nothing was written")
    }

    @Test("a client without a store ends its sites also in streams without a subscription")
    func polled() async throws {
        let network = try FakeNetwork()
        (network.subscriptionsMax, network.subscriptionsTaken) = (1, 1)
        let client = try network.client()
        for name in ["read", "todo"] { try await client.open(name).publish(.insert("task", id: "1")).outcome() }
        await client.close()
        #expect(try await ends(network) == [true])
    }

    @Test("a client with a store does not end its sites when it closes")
    func file() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        await client.close()
        #expect(try await ends(network) == [false])
    }

    @Test("a close that no node answers ends after its timeout, and accepts no more events")
    func silence() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("todo")
        try await stream.publish(.insert("task", id: "1")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.heldPauses) = (true, true, [SyncClient.closeMs]) }
        let close = Task { await client.close() }
        try await eventually { (try? await network.on { !$0.deadlines.isEmpty }) == true }
        await #expect(throws: (any Error).self) { try await stream.publish(.insert("task", id: "2")) }
        try await network.on { $0.fireDeadlines(1) }
        await close.value
        let error = #expect(throws: ReelError.self) { try stream.confirmed.objects("task") }
        #expect(error?.code == .closed)
    }

    @Test("a second close does not wait for the first")
    func twice() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        try await client.open("todo").publish(.insert("task", id: "1")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.heldPauses) = (true, true, [SyncClient.closeMs]) }
        let close = Task { await client.close() }
        try await eventually { (try? await network.on { !$0.deadlines.isEmpty }) == true }
        await client.close()
        await close.value
    }
}
