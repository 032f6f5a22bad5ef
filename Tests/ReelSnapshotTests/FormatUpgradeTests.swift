import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Testing

@testable import ReelSnapshot

/// A partition's file of format 3, whose rows have no hashes.
@Suite(.timeLimit(.minutes(5)))
struct FormatUpgradeTests {
    /// A file as a build with format 3 leaves it.
    private func older() async throws -> StoredFile {
        let stored = try await StoredFile()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        for table in SnapshotFile.tables { try file.execute("ALTER TABLE \(table) DROP COLUMN hash") }
        try file.execute("ALTER TABLE stream DROP COLUMN event; ALTER TABLE event DROP COLUMN before")
        try file.execute("DELETE FROM meta WHERE name = 'barrier'")
        try file.execute("UPDATE meta SET value = 3 WHERE name = 'format'")
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
        let behind = #expect(throws: SnapshotError.self) { try stored.reader.seq() }
        #expect(behind?.code == .nodeBehind)
        var wasTold = 0
        do {
            _ = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0)) { wasTold += 1 }
        }
        #expect(try format(stored) == SnapshotFile.format && wasTold == 1)
        // The two labs have logs of different epochs.
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
