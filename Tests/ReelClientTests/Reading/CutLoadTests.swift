import ReelBase
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// First snapshots that are cut during the transfer.
@Suite(.timeLimit(.minutes(5))) struct CutLoadTests {
    private static let text = String(repeating: "a text of some length ", count: 8)

    @Test("a device continues a cut snapshot, and does not read it again from its beginning")
    func continues() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<6_000 { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text)])) }
            network.cuts = [300_000, 600_000]
        }
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 5_999)
        let requests = try await network.on { $0.requests.filter { $0.contains("/snapshot") || $0.contains("/delta") } }
        #expect(requests.count == 3 && requests[0].hasSuffix("/snapshot"))
        #expect(requests.dropFirst().allSatisfy { $0.contains("/delta?after=5999") && $0.contains("&model=m&id=") })
        let whole = try await network.on { network in
            var (fold, body) = (network.fold(StreamName("s")!), [UInt8]())
            if var writer = try? fold.snapshot(after: -1) { writer.writeAll(to: &body) }
            return body.count
        }
        #expect(await client.statistics.snapshotBytes < Int64(whole) * 3 / 2, "two cuts cost less than half of it")
        #expect(try stream.objects("m").count == 6_000)
        await client.close()
    }

    @Test("a snapshot that is cut many times, with events and restarts in between, ends with the nodes' state")
    func cutAgainAndAgain() async throws {
        var continued = 0
        try await Seeds.runAsync(6) { seed in
            var random = SeededGenerator(seed: seed)
            let network = try FakeNetwork(seed: seed)
            let path = temporaryPath()
            defer { removeStore(path) }
            try await network.on { network in
                for id in 0..<4_000 { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text)])) }
                for id in 0..<40 { network.author(.delete("m", id: "\(id * 9)")) }
            }
            for life in 0..<5 {
                let events = (0..<Int.random(in: 0...200, using: &random)).map { _ in Self.change(&random) }
                let cuts = (0..<3).map { _ in Int.random(in: 150_000...400_000, using: &random) }
                try await network.on { network in
                    for event in events { network.author(event) }
                    network.cuts = life == 4 ? [] : cuts
                }
                let client = try network.client(store: .file(path), seed: seed)
                let stream = try await client.open("s")
                if life < 4 {
                    // The device closes while its load is cut for the second or third time, or after the load is
                    // complete.
                    try await eventually {
                        let (cuts, head) = try await network.on { ($0.cuts.count, $0.head) }
                        let seq = await stream.seq
                        return cuts <= 1 || seq == head
                    }
                } else {
                    let head = try await network.on { $0.head }
                    try await stream.waitUntil(seq: head)
                    let expected = try await network.on { network in
                        var fold = network.fold(StreamName("s")!)
                        return fold.digest()
                    }
                    #expect(await stream.digest() == expected, "seed \(seed)")
                    let count = try stream.objects("m").count
                    let living = try await network.on { network in
                        var fold = network.fold(StreamName("s")!)
                        return fold.totals().livingObjects
                    }
                    #expect(count == living, "seed \(seed)")
                }
                await client.close()
            }
            continued += try await network.on { $0.requests.count { $0.contains("&model=m") } }
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            let generations =
                "SELECT count(DISTINCT substr(key, 2, 8)) FROM pair WHERE substr(key, 1, 1) = CAST('o' AS BLOB)"
            #expect(try connection.integer(generations) == 1, "seed \(seed)")
        }
        // A device that has written nothing before a cut begins again, which depends on the disk.
        #expect(continued > 0 || TestSeed.given != nil)
    }

    @Test("a device reads a snapshot again from its beginning if the nodes cannot continue it")
    func beginsAgain() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<6_000 { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text)])) }
            network.cuts = [600_000]
            for node in ["a", "b", "c"] {
                network.answers[node] = { target, body in
                    target.contains("&model=") ? (410, Array(#"{"code":"truncated"}"#.utf8)) : nil
                }
            }
        }
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 5_999)
        #expect(try stream.objects("m").count == 6_000)
        #expect(try await network.on { $0.requests.count { $0.hasSuffix("/snapshot") } } == 2)
        await client.close()
    }

    @Test("a device also continues a later cut snapshot after a restart")
    func laterSnapshot() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.author(.insert("m", id: "first")) }
        let first = try network.client(store: .file(path))
        try await first.open("s").waitUntil(seq: 0)
        await first.close()
        try await network.on { network in
            for id in 0..<6_000 { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text)])) }
            // No node has a delta that begins at the state of the device.
            for node in ["a", "b", "c"] {
                network.answers[node] = { target, body in
                    let isDelta = target.contains("/delta") && !target.contains("&model=")
                    return isDelta ? (410, Array(#"{"code":"truncated"}"#.utf8)) : nil
                }
            }
            network.cuts = Array(repeating: 0, count: 1_000) + [700_000, 100_000_000]
        }
        let second = try network.client(store: .file(path))
        let stream = try await second.open("s")
        try await eventually { try await network.on { $0.cuts.count } < 1_000 }
        #expect(try stream.objects("m").count == 1, "the former state stays readable")
        await second.close()
        let before = try await network.on { network in
            network.cuts = []
            return network.requests.count
        }
        let third = try network.client(store: .file(path))
        let reopened = try await third.open("s")
        try await reopened.waitUntil(seq: 6_000)
        #expect(try reopened.objects("m").count == 6_001)
        let requests = try await network.on { Array($0.requests[before...]) }
        #expect(requests.contains { $0.contains("&model=m&id=") } && !requests.contains { $0.hasSuffix("/snapshot") })
        await third.close()
    }

    @Test("a device gives up a state that never ends, and leaves nothing of it in the file")
    func endless() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in
            for id in 0..<6_000 { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text)])) }
        }
        let client = try network.client(store: .file(path))
        await client.limitStates(to: 800_000)
        let stream = try await client.open("s")
        try await eventually { client.status.problems.contains { $0.message.contains("more than 800000 bytes") } }
        // The events of the log contain the same state.
        try await stream.waitUntil(seq: 5_999)
        #expect(try stream.objects("m").count == 6_000)
        await client.close()
    }

    private static func change(_ random: inout SeededGenerator) -> SyncEvent {
        let id = "\(Int.random(in: 0..<4_400, using: &random))"
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return .delete("m", id: id)
        case 1:
            return .update(
                "m",
                id: id,
                operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "word ")])]
            )
        default: return .insert("m", id: id, ["text": .string(text), "n": .number(1)])
        }
    }
}

extension SyncClient {
    fileprivate func limitStates(to bytes: Int) { stateBytesMax = bytes }
}
