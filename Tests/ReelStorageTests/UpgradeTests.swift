import Foundation
import ReelCore
import ReelSQLite
import Testing

@testable import ReelClient

/// Files in earlier formats.
@Suite(.timeLimit(.minutes(5))) struct UpgradeTests {
    private let folder: Folder
    private let path: String

    init() throws {
        folder = try Folder()
        path = folder.freshPath
    }

    @Test("an upgrade reads the earlier tables, and leaves only its own pairs", arguments: [1, 2, 3])
    func upgrades(format: Int64) throws {
        try write(format)
        let storage = try SQLiteStorage(path: path) { connection, found in
            #expect(found == format)
            let waiting = try connection.integer("SELECT count(*) FROM outbox")
            #expect(waiting == (format == 1 ? 6 : 1))
            return .puts(["upgraded"], [7])
        }
        #expect(!storage.hasLostCommits)
        #expect(try storage.keys == ["upgraded"])
        storage.close()
        do {
            let connection = try Connection(path: path, mode: .readOnly)
            let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'"
            #expect(try connection.text(tables) == "pair,mark")
            #expect(try connection.integer("PRAGMA user_version") == StorageFormat.number)
            #expect(try connection.integer("PRAGMA auto_vacuum") == 2, "it can shrink")
        }
        let next = try SQLiteStorage(path: path) { _, _ in throw ReelError(.internal, "called twice") }
        #expect(try next.keys == ["upgraded"])
    }

    @Test("a failed upgrade does not change the file", arguments: [1, 2, 3])
    func aFailedUpgrade(format: Int64) throws {
        try write(format)
        let before = try Data(contentsOf: URL(filePath: path))
        let upgrades: [(SQLiteStorage.Upgrade?, ErrorCode)] = [
            ({ _, _ in throw ReelError(.storeDamaged, "no queue") }, .storeDamaged),
            (
                { connection, _ in
                    try connection.execute("SELECT x FROM y"); return StorageChanges()
                }, .storeDamaged
            ),
            ({ _, _ in throw CancellationError() }, .internal),
            (nil, .storeFormat),
        ]
        for (upgrade, code) in upgrades {
            let error = #expect(throws: ReelError.self) { try SQLiteStorage(path: path, upgrade: upgrade) }
            #expect(error?.code == code, "\(error.debugDescription)")
            #expect(try Data(contentsOf: URL(filePath: path)) == before)
        }
        #expect(try SQLiteStorage(path: path) { _, _ in .puts(["a"], [1]) }.keys == ["a"])
    }

    @Test("a file of an earlier format reports that it has lost its WAL")
    func aLostWAL() throws {
        try write(3)
        try Connection(path: path, mode: .readWrite).execute("UPDATE client SET in_use = 1; PRAGMA wal_checkpoint")
        try? FileManager.default.removeItem(atPath: path + "-wal")
        #expect(try SQLiteStorage(path: path) { _, _ in StorageChanges() }.hasLostCommits)
    }

    @Test("an earlier version of the client and this version cannot open a file at the same time")
    func anEarlierVersion() throws {
        try write(3)
        let earlier = try Connection(path: path, mode: .readWrite)
        try earlier.execute("PRAGMA locking_mode = EXCLUSIVE; UPDATE client SET in_use = 1")
        let error = #expect(throws: ReelError.self) { try SQLiteStorage(path: path) { _, _ in StorageChanges() } }
        #expect(error?.code == .storeBusy)
        #expect(try earlier.integer("SELECT count(*) FROM outbox") == 1)
    }

    private func write(_ format: Int64) throws {
        let connection = try Connection(path: path, mode: .create)
        try connection.useWAL(.full)
        if format == 1 {
            let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "Fixtures/device-store-format-1.sql")
            try connection.execute(String(decoding: Data(contentsOf: script), as: UTF8.self))
        } else {
            try connection.execute(
                """
                CREATE TABLE client (row INTEGER PRIMARY KEY, number INTEGER, in_use INTEGER NOT NULL DEFAULT 0);
                CREATE TABLE stream (row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
                CREATE TABLE outbox (stream INTEGER NOT NULL, number INTEGER NOT NULL, event BLOB NOT NULL,
                    PRIMARY KEY (stream, number)) WITHOUT ROWID;
                CREATE TABLE object (stream INTEGER NOT NULL, key BLOB NOT NULL,
                    PRIMARY KEY (stream, key)) WITHOUT ROWID;
                CREATE TABLE site (stream INTEGER NOT NULL, site TEXT NOT NULL,
                    PRIMARY KEY (stream, site)) WITHOUT ROWID;
                CREATE TABLE event (stream INTEGER NOT NULL, seq INTEGER NOT NULL,
                    PRIMARY KEY (stream, seq)) WITHOUT ROWID;
                INSERT INTO client (row, number) VALUES (1, 3);
                INSERT INTO outbox VALUES (1, 1, X'7b7d');
                PRAGMA application_id = \(0x5265_656C);
                PRAGMA user_version = \(format);
                """
            )
        }
        try connection.checkpoint(.truncate)
    }
}
