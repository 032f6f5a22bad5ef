import Foundation
import ReelBase
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The rows of a stream's state in the store.
@Suite(.timeLimit(.minutes(5))) struct StoredStateTests {
    private static let name = StreamName("s")!
    private static let text = String(repeating: "a text of some length ", count: 8)

    @Test("a launch with one new event writes a few pages, however large the state is")
    func aLaunchWithOneNewEventWritesSomePages() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in
            for id in 0..<5_000 { network.author(.insert("m", id: "object \(id)", ["text": .string(Self.text)])) }
        }
        let first = try network.client(store: .file(path))
        try await first.open("s").waitUntil(seq: 4_999)
        await first.close()
        #expect(size(path) > 1 << 20)
        #expect(size(path + "-wal") == 0, "a closed store has copied its WAL")

        try await network.on { $0.author(.update("m", id: "object 7", ["text": "new"])) }
        let later = try network.client(store: .file(path))
        let stream = try await later.open("s")
        try await stream.waitUntil(seq: 5_000)
        _ = try await later.open("another")
        #expect(await later.statistics.deltas == 1)
        let written = size(path + "-wal")
        #expect((1..<100_000).contains(written), "found \(written) bytes in the WAL")
        let digest = await stream.digest()
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
                let start = [StartPosition.snapshot, .latest, .beginning].randomElement(using: &random)!
                let client = try network.client(store: .file(path), seed: seed)
                let stream = try await client.open("s", from: start)
                let head = try await network.on { $0.head }
                try await stream.waitUntil(seq: head)
                // These are live events after the rows.
                for _ in 0..<Int.random(in: 0...8, using: &random) {
                    // An event that the state rejects throws.
                    let publication = try? await stream.publish(Self.change(&random))
                    try await publication?.outcome()
                }
                let expected = try await network.on { network in
                    var fold = network.fold(Self.name)
                    return fold.digest()
                }
                let digest = await stream.digest()
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
            network.author(.insert("m", id: "0"))
            network.author(.insert("m", id: "1"))
            network.author(.delete("m", id: "1"))
            for number in 0..<count { network.author(.update("m", id: "0", ["n": .number(Double(number))])) }
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s", from: .beginning)
        try await stream.waitUntil(seq: Seq(count) + 2)
        let digest = await stream.digest()
        await client.close()
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            func count(_ kind: String) throws -> Int64? {
                try connection.integer("SELECT count(*) FROM pair WHERE substr(key, 1, 1) = CAST('\(kind)' AS BLOB)")
            }
            #expect(try count("e") ?? .max < 1_000)
            #expect(try count("o") == 2)
            #expect(try count("i") == 1)
            #expect(try count("a") == 1)
        }
        #expect(try await digestOffline(network, path) == digest)
    }

    @Test(
        "a client drops a damaged state and reads it again from a node, and keeps waiting events",
        arguments: ["t", "p", "e", "i", "o"],
        Damage.allCases
    )
    func aDamagedStateIsDropped(kind: String, damage: Damage) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in for id in 0..<3 { network.author(.insert("m", id: "\(id)")) } }
        do {
            let client = try network.client(store: .file(path))
            let stream = try await client.open("s")
            try await stream.waitUntil(seq: 2)
            // These events follow the state.
            try await network.on { network in
                for id in 3..<6 { network.author(.insert("m", id: "\(id)")) }
                network.pushAll()
            }
            try await stream.waitUntil(seq: 5)
            try await network.on { $0.kill("a") }
            try await stream.publish(.insert("m", id: "own"))
            await client.close()
        }
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            let beginning = "substr(key, 1, 1) = CAST('\(kind)' AS BLOB)"
            try connection.execute(
                "UPDATE pair SET \(damage.change) WHERE key = (SELECT max(key) FROM pair WHERE \(beginning))"
            )
            #expect(connection.changes == 1)
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        #expect(await stream.pendingCount == 1)
        if kind == "o" {
            // The client reads objects only when they are needed.
            if damage != .otherKey {
                let error = #expect(throws: ReelError.self) { try stream.objects("m") }
                #expect(error?.code == .storeDamaged)
                try await eventually { await stream.seq == -1 }
            }
        } else {
            #expect(await stream.seq == -1, "a damaged state is not shown")
        }
        try await network.on { $0.down = [] }
        try await eventually { await stream.pendingCount == 0 }
        guard kind != "o" || damage != .otherKey else { return await client.close() }
        #expect(try stream.confirmed.objects("m").count == 7)
        let digest = await stream.digest()
        await client.close()
        #expect(try await digestOffline(network, path) == digest)
    }

    /// A way to damage a pair of the store.
    enum Damage: String, CaseIterable {
        case empty, short, flipped, longer, otherKey

        /// The change to a row of the table.
        var change: String {
            switch self {
            case .empty: "value = X''"
            case .short: "value = substr(value, 1, length(value) - 1)"
            case .flipped: "value = CAST(substr(value, 1, length(value) - 1) || X'7F' AS BLOB)"
            case .longer: "value = CAST(value || X'00' AS BLOB)"
            case .otherKey: "key = CAST(key || X'31' AS BLOB)"
            }
        }
    }

    /// Returns the digest of the content of a store, without any node.
    private func digestOffline(_ network: FakeNetwork, _ path: String) async throws -> UInt64? {
        let client = try SyncClient(nodes: [], store: .file(path), transport: network)
        let digest = try await client.open("s").digest()
        await client.close()
        return digest
    }

    private func size(_ path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }

    private static func change(_ random: inout SeededGenerator) -> SyncEvent {
        let id = "\(Int.random(in: 0..<20, using: &random))"
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .delete("m", id: id)
        case 1: return .update("m", id: id, ["b": .number(Double(Int.random(in: 0..<9, using: &random)))])
        case 2:
            return .update(
                "m",
                id: id,
                operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "word ")])]
            )
        default: return .insert("m", id: id, ["text": .string(text), "a": .bool(Bool.random(using: &random))])
        }
    }
}
