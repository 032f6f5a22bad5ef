import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ReelClient

/// Stores of earlier formats.
@Suite(.timeLimit(.minutes(5))) struct StoreFormatTests {
    @Test("a store of format 1 keeps its streams, sites, queues and log number, and drops what was received")
    func format1IsMigrated() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat1(path)
        do {
            let store = try DeviceStore(path: path)
            #expect(try store.client().logNumber == 3)
            #expect(try store.queued() == ["s": 5, "t": 0, "u": 1])
        }
        let store = try DeviceStore(path: path)
        #expect(try store.client().logNumber == 3)
        let unused = try #require(Site("00000000-0000-4000-8000-000000000000"))
        let first = try store.open(try #require(StreamName("s")), newSite: unused)
        #expect(first.site.description == "fad6e246-7125-4235-9b1a-399b7fc87089")
        #expect(first.nextOp == 2)
        #expect(first.epoch == Epoch(1))
        #expect(first.position == nil && !first.holdsState)
        #expect(first.entries.map(\.number) == [2, 3, 4, 5, 6])
        #expect(first.entries.map(\.base) == [4, 4, 4, 4, 4])
        #expect(first.entries.map(\.author?.op) == [1, nil, nil, nil, nil])
        #expect(first.entries.allSatisfy { $0.firstSent == nil && $0.held.isEmpty && $0.waits == nil })
        #expect(first.entries[2].event == .update("m", "own", operations: ["text": .splice([Splice(5, 0, " word")])]))
        #expect(try store.readEvents(first.row)?.isEmpty == true)
        let last = try store.open(try #require(StreamName("u")), newSite: unused)
        #expect(last.site.description == "57bb9081-b9ad-4060-a031-b6e88887a1e2")
        #expect(last.epoch == nil)
    }

    @Test("a device that opens a format 2 store keeps its user, log number, sites and queues")
    func format2IsMigrated() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let (name, site) = (try #require(StreamName("s")), Site(high: 1, low: 1))
        var entry = Outbox.Entry(number: 7, event: .insert("m", "1"), base: 4)
        entry.author = .init(site: site, op: 2)
        let client = DeviceStore.ClientRow(logNumber: 3, user: "ann", deployment: Deployment("0000000000000005"))
        do {
            let store = try DeviceStore(path: path)
            let row = try store.open(name, newSite: site).row
            try store.commit(durably: true) { () throws(SQLiteError) in
                try store.write([.put(entry), .site(site, next: 3)], of: name, row)
                try store.changeClient { $0 = client }
                try store.write(event: [0x7b, 0x7d], seq: 5, row)
            }
        }
        try Connection(path: path, mode: .readWrite, busyMs: 5_000).execute(
            """
            ALTER TABLE client DROP COLUMN hash;
            ALTER TABLE stream DROP COLUMN site_hash;
            ALTER TABLE stream DROP COLUMN position_hash;
            ALTER TABLE stream DROP COLUMN state_hash;
            ALTER TABLE outbox DROP COLUMN hash;
            ALTER TABLE object DROP COLUMN hash;
            ALTER TABLE site DROP COLUMN hash;
            ALTER TABLE event DROP COLUMN hash;
            PRAGMA user_version = 2;
            """
        )
        for _ in 0..<2 {
            let store = try DeviceStore(path: path)
            #expect(try store.client() == client)
            let stored = try store.open(name, newSite: Site(high: 9, low: 9))
            #expect(stored.site == site && stored.nextOp == 3 && stored.entries == [entry] && !stored.holdsState)
            #expect(try store.readEvents(stored.row)?.isEmpty == true)
        }
    }

    @Test("a device sends a migrated queue once, after it gets the state from a node")
    func sendsMigratedQueue() async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat1(path)
        let network = try FakeNetwork()
        try await network.on { network in
            network.number = 3
            for _ in 0..<5 { network.skip() }
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("u")
        try await eventually { await stream.queued == 0 }
        #expect(await stream.confirmed.objects("m").map(\.name.id) == ["unsent"])
        await client.close()
    }

    @Test("a device refuses base-dependent events of a migrated queue after its log has ended")
    func migratedQueueNewEpoch() async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat1(path)
        let network = try FakeNetwork()
        try await network.on { network in
            network.number = 4
            network.beginEpoch(Epoch(2))
            network.skip(9)
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        let pending = await stream.pending
        #expect(pending.count == 5)
        for publication in pending where publication.event.dependsOnBase {
            guard case .refused(let error) = try await publication.fate(), error.code == .epochChanged else {
                throw Wrong()
            }
        }
        try await eventually { await stream.queued == 0 }
        #expect(await stream.confirmed.object("m", "new") != nil)
        await client.close()
    }

    @Test("the store keeps all data of a queue entry with its event")
    func storesWholeEntry() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let name = try #require(StreamName("s"))
        let site = try #require(Site("00000000-0000-4000-8000-000000000000"))
        var entry = Outbox.Entry(number: 7, event: .insert("m", "1"), base: 4)
        entry.firstSent = .init(epoch: Epoch(9), seq: -1)
        entry.held = [0, 3]
        entry.waits = [3, 5]
        var other = Outbox.Entry(number: 8, event: .insert("m", "2"), base: 4)
        other.waits = []
        do {
            let store = try DeviceStore(path: path)
            let row = try store.open(name, newSite: site).row
            try store.commit(durably: true) { () throws(SQLiteError) in
                try store.write([.put(entry), .put(other)], of: name, row)
            }
        }
        #expect(try DeviceStore(path: path).open(name, newSite: site).entries == [entry, other])
    }

    private func writeFormat1(_ path: String) throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/device-store-format-1.sql")
        let connection = try Connection(path: path, mode: .create)
        try connection.useWAL(.full)
        try connection.execute(String(decoding: Data(contentsOf: script), as: UTF8.self))
        try connection.checkpoint(.truncate)
    }
}
