import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests the upgrade of a partition's file of an older format.
@Suite(.timeLimit(.minutes(5)))
struct FormatUpgradeTests {
    /// Returns a file as a build with format 3 leaves it.
    private func older() async throws -> StoredFile {
        let stored = try await withoutDigests()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        for table in SnapshotFile.tables { try file.execute("ALTER TABLE \(table) DROP COLUMN hash") }
        try file.execute("ALTER TABLE stream DROP COLUMN event; ALTER TABLE event DROP COLUMN before")
        try file.execute("DELETE FROM meta WHERE name = 'barrier'")
        try file.execute("UPDATE meta SET value = 3 WHERE name = 'format'; DROP TABLE waiting")
        return stored
    }

    private func format(_ stored: StoredFile) throws -> Int64? {
        try Connection(path: stored.lab.path(0), mode: .readOnly)
            .integer("SELECT value FROM meta WHERE name = 'format'")
    }

    @Test("a file without hashes is upgraded with all that it holds, and each of its rows is checked from then on")
    func upgrade() async throws {
        let right = try await StoredFile()
        let stored = try await older()
        let behind = #expect(throws: SnapshotError.self) { try stored.reader.seq(of: StoredFile.todo) }
        #expect(behind?.code == .nodeBehind)
        var wasTold = 0
        do {
            _ = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0)) { wasTold += 1 }
        }
        #expect(try format(stored) == SnapshotFile.format && wasTold == 1)
        // The two labs have logs of different epochs, so the answers name different epochs.
        let (epoch, other) = (stored.lab.log.epoch.description, right.lab.log.epoch.description)
        let answers = try stored.answers().mapValues { $0?.replacing(epoch, with: other) }
        #expect(try answers == right.answers())
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        #expect(try file.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'old%'") == 0)
        try file.execute("UPDATE object SET data = CAST(replace(data, '7777', '6777') AS BLOB)")
        #expect(throws: StateReader.Damage.self) {
            try stored.reader.object(of: StoredFile.todo, model: "m", id: "task")
        }
        _ = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0)) { wasTold += 1 }
        #expect(wasTold == 1, "it is upgraded once")
    }

    /// Returns a file as a build with format 6 leaves it.
    private func withoutDigests() async throws -> StoredFile {
        let stored = try await StoredFile()
        try dropDigests(stored)
        return stored
    }

    private func dropDigests(_ stored: StoredFile) throws {
        let file = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
        try file.connection.begin()
        try file.connection.execute(
            """
            ALTER TABLE object RENAME TO new_object;
            CREATE TABLE object (stream INTEGER, key BLOB, data BLOB NOT NULL, hash INTEGER NOT NULL,
                PRIMARY KEY (stream, key)) WITHOUT ROWID;
            """
        )
        do {
            let rows = try file.connection.prepare("SELECT stream, key, data FROM new_object")
            let put = try file.connection.prepare("INSERT INTO object VALUES (?, ?, ?, ?)")
            while try rows.step() {
                let key = ObjectKey.escaped(rows.bytes(1))
                put.bind(1, rows.integer(0))
                put.bind(2, key)
                put.bind(3, copying: rows.bytes(2))
                put.bind(4, key.withUnsafeBytes { StoredRow.entry(.object, rows.integer(0), $0, rows.bytes(2)) })
                try put.run()
            }
        }
        try file.connection.execute("DROP TABLE new_object")
        try file.setMeta("format", 6)
        try file.connection.commit()
    }

    /// Returns a file as a build with format 4 leaves it.
    private func withoutFigures() async throws -> StoredFile {
        let stored = try await StoredFile()
        do {
            let file = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
            let rows = try file.connection.prepare("SELECT \(StoredRow.streamColumns) FROM stream")
            try file.connection.begin()
            while try rows.step() {
                try file.setStream(
                    rows.integer(0),
                    name: try #require(StreamName(rows.text(1))),
                    head: rows.bytes(2),
                    digest: UInt64(bitPattern: rows.integer(3)),
                    sites: Int(rows.integer(4)),
                    lastEvent: rows.integer(5),
                    figures: nil
                )
            }
            try file.connection.commit()
        }
        try dropDigests(stored)
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        let format = try file.prepare("UPDATE meta SET value = 4, hash = ? WHERE name = 'format'")
        format.bind(1, Array("format".utf8).withUnsafeBytes { StoredRow.meta($0, 4) })
        try format.run()
        for column in ["objects", "bytes", "at"] { try file.execute("ALTER TABLE stream DROP COLUMN \(column)") }
        try file.execute("DROP TABLE waiting")
        return stored
    }

    @Test("an upgraded file of format 4 has all figures but the time, which a stream gets with its next event")
    func upgradeOfFigures() async throws {
        let right = try await StoredFile()
        let stored = try await withoutFigures()
        let archive = try SnapshotArchive(folders: [stored.lab.folder.path], of: nil)
        #expect(try archive.state(of: 0)?.fold.streams.count == 2, "a new epoch can begin with it as it is")
        let behind = #expect(throws: SnapshotError.self) { try stored.reader.seq(of: StoredFile.todo) }
        #expect(behind?.code == .nodeBehind)
        let node = try stored.lab.node()
        defer { node.close() }
        try await eventually("the file is upgraded") { try format(stored) == SnapshotFile.format }
        let (epoch, other) = (stored.lab.log.epoch.description, right.lab.log.epoch.description)
        #expect(try stored.answers().mapValues { $0?.replacing(epoch, with: other) } == right.answers())
        func list(_ stored: StoredFile) throws -> [ListedStream] {
            try stored.reader.streams(in: [NameRange(prefix: "")], after: "", bound: nil, limit: 10)
        }
        let (old, new) = (try list(stored), try list(right))
        #expect(old.map(\.stream) == new.map(\.stream) && old.map(\.seq) == new.map(\.seq))
        #expect(old.allSatisfy { $0.objects ?? 0 > 0 && $0.atMs == nil })
        #expect(old.map(\.objects) == new.map(\.objects) && old.map(\.bytes) == new.map(\.bytes))
        let noop = EventText.logged("noop", "00000000-0000-4000-8000-000000000009", 0, at: 5).text
        try await stored.lab.log.append([noop], key: "todo", to: 0)
        try await stored.lab.reach(node, 0, 90)
        let (todo, known) = (try list(stored).last, new.last)
        #expect(todo?.objects == known?.objects && todo?.bytes == known?.bytes && todo?.atMs == 5)
        #expect(try list(stored).first?.atMs == nil, "no event of the other stream has come")
    }

    @Test("a file of format 6 is upgraded with all that it holds, and a damaged row is not given a new hash")
    func upgradeOfDigests() async throws {
        let right = try await StoredFile()
        let stored = try await withoutDigests()
        #expect(try format(stored) == 6)
        let archive = try SnapshotArchive(folders: [stored.lab.folder.path], of: nil)
        #expect(try archive.state(of: 0)?.fold.streams.count == 2, "a new epoch can begin with it as it is")
        let damaged = try await withoutDigests()
        try Connection(path: damaged.lab.path(0), mode: .readWrite)
            .execute("UPDATE object SET data = CAST(replace(data, '7777', '6777') AS BLOB)")
        #expect(throws: SnapshotFile.Unusable.self) {
            try SnapshotFile(path: damaged.lab.path(0), identity: damaged.lab.identity(0))
        }
        #expect(try format(damaged) == 6)
        do { _ = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0)) }
        #expect(try format(stored) == SnapshotFile.format)
        let (epoch, other) = (stored.lab.log.epoch.description, right.lab.log.epoch.description)
        #expect(try stored.answers().mapValues { $0?.replacing(epoch, with: other) } == right.answers())
    }

    @Test("an older file with an object that may have too many runs is not upgraded but made from the log again")
    func tooManyRuns() async throws {
        let stored = try await withoutFigures()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        try file.execute("UPDATE object SET data = zeroblob(200000)")
        let error = #expect(throws: SnapshotFile.Unusable.self) {
            try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
        }
        #expect(error?.reason.contains("runs") == true)
        #expect(try format(stored) == 4)
    }

    @Test("a file without hashes of which a stream has another digest is not given any")
    func damaged() async throws {
        let stored = try await older()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        try file.execute("UPDATE object SET data = CAST(replace(data, '7777', '6777') AS BLOB)")
        #expect(throws: SnapshotFile.Unusable.self) {
            try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
        }
        #expect(try format(stored) == SnapshotFile.formatWithoutHashes)
    }

    @Test("a new epoch begins with the state of a file without hashes, which stays as it is")
    func archive() async throws {
        let stored = try await older()
        let archive = try SnapshotArchive(folders: [stored.lab.folder.path], of: nil)
        let state = try #require(try archive.state(of: 0))
        #expect(state.fold.next == 90 && state.fold.streams.count == 2 && state.unread.isEmpty)
        #expect(try format(stored) == SnapshotFile.formatWithoutHashes)
    }
}
