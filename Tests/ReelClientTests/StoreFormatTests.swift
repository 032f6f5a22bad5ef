import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Stores in earlier formats.
@Suite(.timeLimit(.minutes(5))) struct StoreFormatTests {
    @Test("a store of format 1 keeps its streams, sites, queues and log number, and drops received data")
    func format1IsMigrated() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat1(path)
        do {
            let store = try DeviceStore(path: path)
            #expect(store.client.logNumber == 3)
            #expect(try store.queued() == ["s": 5, "t": 0, "u": 1])
        }
        let store = try DeviceStore(path: path)
        #expect(store.client.logNumber == 3)
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
        #expect(
            first.entries[2].event
                == .update(
                    "m",
                    id: "own",
                    operations: ["text": .splice([TextSplice(at: 5, removing: 0, inserting: " word")])]
                )
        )
        #expect(try store.readEvents(first.row)?.isEmpty == true)
        let last = try store.open(try #require(StreamName("u")), newSite: unused)
        #expect(last.site.description == "57bb9081-b9ad-4060-a031-b6e88887a1e2")
        #expect(last.epoch == nil)
    }

    @Test("a store of format 2 or 3 keeps its user, log number, sites and queues", arguments: [2, 3])
    func laterFormatsAreMigrated(format: Int) throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat3(path)
        if format == 2 {
            try Connection(path: path, mode: .readWrite, busyMs: 5_000).execute(
                """
                ALTER TABLE client DROP COLUMN hash;
                ALTER TABLE stream DROP COLUMN site_hash;
                ALTER TABLE outbox DROP COLUMN hash;
                PRAGMA user_version = 2;
                """
            )
        }
        var entry = Outbox.Entry(number: 7, event: .insert("m", id: "1"), base: 4)
        entry.author = .init(site: Site(high: 1, low: 1), op: 2)
        entry.firstSent = .init(epoch: Epoch(9), seq: -1)
        entry.held = [0, 3]
        entry.waits = [3, 5]
        for _ in 0..<2 {
            let store = try DeviceStore(path: path)
            #expect(store.client.logNumber == 3 && store.client.user == "ann")
            #expect(store.client.deployment == Deployment("0000000000000005"))
            let stored = try store.open(try #require(StreamName("s")), newSite: Site(high: 9, low: 9))
            #expect(stored.site == Site(high: 1, low: 1) && stored.nextOp == 3 && stored.entries == [entry])
            #expect(stored.epoch == Epoch(9) && !stored.holdsState)
            #expect(try store.readEvents(stored.row)?.isEmpty == true)
            #expect(try store.open(try #require(StreamName("t")), newSite: Site(high: 9, low: 9)).row > stored.row)
        }
    }

    @Test(
        "a client does not change a damaged store of format 3, and the error names the table",
        arguments: ["client", "outbox"]
    )
    func damagedFormat3(table: String) throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        try writeFormat3(path)
        try Connection(path: path, mode: .readWrite, busyMs: 5_000).execute("UPDATE \(table) SET hash = hash + 1")
        for _ in 0..<2 {
            let error = #expect(throws: ReelError.self) { try DeviceStore(path: path) }
            #expect(error?.code == .storeDamaged && error?.message.contains("in table \(table)") == true)
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
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.confirmed.objects("m").map(\.name.id) == ["unsent"])
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
        let pending = await stream.pending()
        #expect(pending.count == 5)
        for publication in pending where publication.event.dependsOnBase {
            guard case .failed(let error) = try await publication.outcome(), error.code == .epochChanged else {
                throw Wrong()
            }
        }
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.confirmed.object("m", id: "new") != nil)
        await client.close()
    }

    @Test("the store keeps all data of a queue entry with its event")
    func storesWholeEntry() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let name = try #require(StreamName("s"))
        let site = try #require(Site("00000000-0000-4000-8000-000000000000"))
        var entry = Outbox.Entry(number: 7, event: .insert("m", id: "1"), base: 4)
        entry.firstSent = .init(epoch: Epoch(9), seq: -1)
        entry.held = [0, 3]
        entry.waits = [3, 5]
        var other = Outbox.Entry(number: 8, event: .insert("m", id: "2"), base: 4)
        other.waits = []
        do {
            let store = try DeviceStore(path: path)
            let row = try store.open(name, newSite: site).row
            let outbox = Outbox(site: site, nextOp: 0, entries: [entry, other], seed: 1)
            try store.commit(durably: true) { (changes) throws(ReelError) in
                store.write([.put(entry), .put(other)], of: outbox, name, row, &changes)
            }
        }
        #expect(try DeviceStore(path: path).open(name, newSite: site).entries == [entry, other])
    }

    @Test(
        "rows that a flipped bit hides from SQLite are found, and nothing is sent without them",
        arguments: ["q", "s"]
    )
    func lostRows(kind: String) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(nodes: [], store: .file(path))
        for stream in ["r", "s"] {
            let stream = try await client.open(stream)
            for id in 0..<3 { try await stream.publish(.insert("m", id: "\(id)")) }
        }
        #expect(try await client.streams().map(\.pendingCount) == [3, 3])
        try await client.forget("r", discardingQueue: true)
        await client.close()
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            try connection.execute(
                """
                DELETE FROM pair WHERE key =
                    (SELECT max(key) FROM pair WHERE substr(key, 1, 1) = CAST('\(kind)' AS BLOB))
                """
            )
        }
        let error = await #expect(throws: ReelError.self) {
            try await network.client(nodes: [], store: .file(path)).open("s")
        }
        #expect(error?.code == .storeDamaged)
        #expect(
            error?.message.contains(
                kind == "q" ? "found 2 waiting events of the stream s, expected 3" : "found 0 streams, expected 1"
            ) == true
        )
    }

    /// Makes a store of format 3 with one queued event.
    private func writeFormat3(_ path: String) throws {
        let connection = try Connection(path: path, mode: .create)
        try connection.useWAL(.full)
        let site = "\(Site(high: 1, low: 1))"
        let client = StoreRowHash.client(number: 3, user: "ann", deployment: "0000000000000005")
        try connection.execute(
            """
            CREATE TABLE client (row INTEGER PRIMARY KEY, number INTEGER NOT NULL, user TEXT,
                deployment TEXT, in_use INTEGER NOT NULL DEFAULT 0, hash INTEGER NOT NULL);
            INSERT INTO client VALUES (1, 3, 'ann', '0000000000000005', 0, \(client));
            CREATE TABLE stream (row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                site TEXT NOT NULL, next_op INTEGER NOT NULL,
                epoch TEXT, partition INTEGER, partitions INTEGER, covered TEXT,
                complete INTEGER NOT NULL DEFAULT 0,
                state_seq INTEGER, state_digest INTEGER, state_head BLOB,
                site_hash INTEGER NOT NULL, position_hash INTEGER, state_hash INTEGER);
            INSERT INTO stream (row, name, site, next_op, epoch, covered, site_hash) VALUES
                (1, 's', '\(site)', 3, '0000000000000009', '0-5', \(StoreRowHash.site(of: "s", site, nextOp: 3)));
            CREATE TABLE outbox (stream INTEGER NOT NULL, number INTEGER NOT NULL,
                event BLOB NOT NULL, site TEXT, op INTEGER, first_epoch TEXT, first_seq INTEGER,
                known TEXT, waits TEXT, hash INTEGER NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
            CREATE TABLE object (stream INTEGER NOT NULL, key BLOB NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
            CREATE TABLE site (stream INTEGER NOT NULL, site TEXT NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, site)) WITHOUT ROWID;
            CREATE TABLE event (stream INTEGER NOT NULL, seq INTEGER NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
            INSERT INTO event VALUES (1, 5, X'7B7D', 0);
            PRAGMA application_id = \(0x5265_656C);
            PRAGMA user_version = 3;
            """
        )
        let insert = try connection.prepare(
            "INSERT INTO outbox VALUES (1, 7, ?, ?, 2, '0000000000000009', -1, '0,3', '3,5', 0)"
        )
        insert.bind(1, SyncEvent.insert("m", id: "1").encoded(base: 4))
        insert.bind(2, site)
        try insert.run()
        let select = try connection.prepare("SELECT \(EntryColumns.names) FROM outbox")
        #expect(try select.step())
        let hash = StoreRowHash.entry(1, EntryColumns(select, from: 0, isOfFormat1: false))
        select.reset()
        try connection.execute("UPDATE outbox SET hash = \(hash)")
        try connection.checkpoint(.truncate)
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
