import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ReelClient

/// The state of a stream in the store, row by row.
@Suite(.timeLimit(.minutes(5))) struct StoredStateTests {
    private static let name = StreamName("s")!
    private static let text = String(repeating: "a text of some length ", count: 8)

    @Test("a launch with one new event writes some pages, however large the state is")
    func aLaunchWithOneNewEventWritesSomePages() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in
            for id in 0..<5_000 { network.author(.insert("m", "object \(id)", ["text": .string(Self.text)])) }
        }
        let first = try network.client(store: .file(path))
        try await first.open("s").waitUntil(seq: 4_999)
        await first.close()
        #expect(size(path) > 1 << 20)
        #expect(size(path + "-wal") == 0, "a closed store has copied its WAL")

        try await network.on { $0.author(.update("m", "object 7", ["text": "new"])) }
        let later = try network.client(store: .file(path))
        let stream = try await later.open("s")
        try await stream.waitUntil(seq: 5_000)
        _ = try await later.open("another")
        #expect(await later.statistics.deltas == 1)
        let written = size(path + "-wal")
        #expect((1..<100_000).contains(written), "found \(written) bytes in the WAL")
        let digest = await stream.digest
        await later.close()
        #expect(try await digestOffline(network, path) == digest)
    }

    @Test("a device's rows match the state of the nodes after snapshots, deltas and events", .timeLimit(.minutes(2)))
    func rowsMatchNodes() async throws {
        try await Seeds.runAsync(6) { seed in
            var random = SeededGenerator(seed: seed)
            let network = try FakeNetwork(seed: seed)
            let path = temporaryPath()
            defer { removeStore(path) }
            for life in 0..<6 {
                let events = (0..<Int.random(in: 0...60, using: &random)).map { _ in Self.change(&random) }
                try await network.on { network in for event in events { network.author(event) } }
                let start = [SyncStart.snapshot, .now, .all].randomElement(using: &random)!
                let client = try network.client(store: .file(path), seed: seed)
                let stream = try await client.open("s", from: start)
                let head = try await network.on { $0.head }
                try await stream.waitUntil(seq: head)
                // Live events, behind the rows.
                for _ in 0..<Int.random(in: 0...8, using: &random) {
                    // What the state rejects is thrown.
                    let publication = try? await stream.publish(Self.change(&random))
                    try await publication?.fate()
                }
                let expected = try await network.on { network in
                    var fold = network.fold(Self.name)
                    return fold.digest()
                }
                let digest = await stream.digest
                #expect(digest == expected, "seed \(seed), life \(life)")
                await client.close()
                #expect(
                    try await digestOffline(network, path) == expected,
                    "seed \(seed), life \(life), from the store"
                )
            }
        }
    }

    @Test("a device drops stored events that its rows cover, even if they outnumber the objects")
    func dropsCoveredEvents() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let count = SyncClient.eventsBehindStateMax + 100
        try await network.on { network in
            network.author(.insert("m", "0"))
            network.author(.insert("m", "1"))
            network.author(.delete("m", "1"))
            for number in 0..<count { network.author(.update("m", "0", ["n": .number(Double(number))])) }
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s", from: .all)
        try await stream.waitUntil(seq: Seq(count) + 2)
        let digest = await stream.digest
        await client.close()
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            #expect(try connection.integer("SELECT count(*) FROM event") ?? .max < 1_000)
            #expect(try connection.integer("SELECT count(*) FROM object") == 2)
            #expect(try connection.integer("SELECT count(*) FROM site") == 1)
        }
        #expect(try await digestOffline(network, path) == digest)
    }

    @Test(
        "a damaged state is dropped and read again from a node, and what waits is kept",
        arguments: [
            "DELETE FROM object WHERE key = CAST('m' || char(0) || '1' AS BLOB)", "UPDATE object SET value = X'0102'",
            "UPDATE object SET key = X'6D' WHERE key = (SELECT min(key) FROM object)",
            "UPDATE object SET key = X'00' WHERE key = (SELECT min(key) FROM object)", "UPDATE object SET value = X''",
            "DELETE FROM site", "UPDATE site SET site = 'nobody'", "UPDATE site SET value = X'FFFFFFFFFFFFFFFFFFFF'",
            "UPDATE stream SET state_digest = state_digest + 1", "UPDATE stream SET state_head = X''",
            "UPDATE stream SET state_seq = -7", "UPDATE stream SET state_seq = 9223372036854775807",
            "UPDATE stream SET partitions = 0", "UPDATE stream SET partitions = -1",
            "UPDATE stream SET partition = 1", "UPDATE stream SET partition = -1",
            "UPDATE stream SET partition = 9223372036854775807, partitions = 9223372036854775807",
            "UPDATE stream SET covered = '5'", "UPDATE stream SET covered = '0-99999999999999999999'",
            "UPDATE stream SET covered = '9-0'", "UPDATE stream SET covered = NULL",
            // What can be read, and is not what was written.
            "UPDATE stream SET covered = '0-1'", "UPDATE stream SET complete = 1 - complete",
            "UPDATE stream SET state_seq = 1",
            "UPDATE event SET value = CAST(replace(CAST(value AS TEXT), 'insert', 'delete') AS BLOB)",
            "UPDATE event SET seq = seq + 1 WHERE seq = (SELECT max(seq) FROM event)",
            "UPDATE object SET value = value || X'00' WHERE key = (SELECT max(key) FROM object)",
        ]
    )
    func aDamagedStateIsDropped(change: String) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in for id in 0..<3 { network.author(.insert("m", "\(id)")) } }
        do {
            let client = try network.client(store: .file(path))
            let stream = try await client.open("s")
            try await stream.waitUntil(seq: 2)
            // Behind the state, as events.
            try await network.on { network in
                for id in 3..<6 { network.author(.insert("m", "\(id)")) }
                network.pushAll()
            }
            try await stream.waitUntil(seq: 5)
            try await network.on { $0.kill("a") }
            try await stream.publish(.insert("m", "own"))
            await client.close()
        }
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            try connection.execute(change)
            #expect(connection.changes > 0)
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        #expect(await stream.queued == 1)
        #expect(await stream.seq == -1, "what is damaged is not shown")
        try await network.on { $0.down = [] }
        try await eventually { await stream.queued == 0 }
        #expect(await stream.confirmed.objects("m").count == 7)
        let digest = await stream.digest
        await client.close()
        #expect(try await digestOffline(network, path) == digest)
    }

    /// The digest of what a store holds, without any node.
    private func digestOffline(_ network: FakeNetwork, _ path: String) async throws -> UInt64? {
        let client = try SyncClient(nodes: [], store: .file(path), transport: network)
        let digest = try await client.open("s").digest
        await client.close()
        return digest
    }

    private func size(_ path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }

    private static func change(_ random: inout SeededGenerator) -> Event {
        let id = "\(Int.random(in: 0..<20, using: &random))"
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .delete("m", id)
        case 1: return .update("m", id, ["b": .number(Double(Int.random(in: 0..<9, using: &random)))])
        case 2: return .update("m", id, operations: ["text": .splice([Splice(0, 0, "word ")])])
        default: return .insert("m", id, ["text": .string(text), "a": .bool(Bool.random(using: &random))])
        }
    }
}
