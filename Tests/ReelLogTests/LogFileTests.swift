import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelSQLite
import TestSupport
import Testing

/// Tests a log's file under ordinary operations: it is closed, moved, copied and restored.
@Suite(.timeLimit(.minutes(5)))
struct LogFileTests {
    private let files = FileManager.default

    /// Creates a log with these records and closes it.
    private func make(_ path: String, _ texts: [String]) async throws {
        let log = try SQLiteLog(path: path, partitions: 1)
        for text in texts { try await log.append(text) }
        log.close()
    }

    private func texts(_ log: any EventLog) throws -> [String] {
        try log.read(0, from: 0, to: 999, bytes: .max).seen.map(\.text)
    }

    /// Opens and closes the log at a path, and returns its notice and records.
    private func look(_ path: String) throws -> (notice: String?, texts: [String]) {
        let log = try SQLiteLog(path: path)
        defer { log.close() }
        return (log.notice, try texts(log))
    }

    private func size(_ path: String) -> Int {
        ((try? files.attributesOfItem(atPath: path))?[.size] as? Int) ?? -1
    }

    private func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", ".lock"] { try? files.removeItem(atPath: path + suffix) }
    }

    /// Overwrites the contents of a file with another file. The overwritten file keeps its inode.
    private func copy(_ path: String, into other: String) throws {
        let bytes = try #require(files.contents(atPath: path))
        let file = try #require(FileHandle(forWritingAtPath: other))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    // MARK: A clean stop

    @Test("after a clean stop the file alone is whole, and its WAL is empty") func whole() async throws {
        try await withFolder { folder in
            let (path, alone) = (folder + "/log.db", folder + "/alone/log.db")
            try await make(path, (0..<50).map { "record \($0)" })
            #expect(size(path + "-wal") == 0)
            try files.createDirectory(atPath: folder + "/alone", withIntermediateDirectories: false)
            try files.copyItem(atPath: path, toPath: alone)
            #expect(try look(alone).texts == (0..<50).map { "record \($0)" })
        }
    }

    @Test("of several users of a file the last one makes it whole, in whatever order they close")
    func lastUser() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let logs = [try SQLiteLog(path: path, partitions: 1), try SQLiteLog(path: path), try SQLiteLog(path: path)]
            for log in logs { try await log.append("x") }
            for log in logs.dropLast() {
                log.close()
                #expect(size(path + "-wal") > 0, "the others write on where they are")
            }
            logs[2].close()
            #expect(size(path + "-wal") == 0)
        }
    }

    @Test("all that close at the same moment leave a whole file") func atOnce() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            for _ in 0..<10 {
                let logs = try (0..<4).map { _ in try SQLiteLog(path: path, partitions: 1) }
                await withTaskGroup(of: Void.self) { group in
                    for log in logs { group.addTask { log.close() } }
                }
                #expect(size(path + "-wal") == 0)
            }
        }
    }

    @Test("a program that reads the file holds up no close, and loses nothing") func reader() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            try await log.append("a")
            let reader = try Connection(path: path, mode: .readOnly)
            try reader.beginRead()
            _ = try reader.integer("SELECT count(*) FROM records_0")
            try await log.append("b")
            log.close()
            #expect(size(path + "-wal") > 0)
            reader.rollback()
            let found = try look(path)
            #expect(found.notice == nil && found.texts == ["a", "b"])
            #expect(size(path + "-wal") == 0)
        }
    }

    @Test("a process that hangs inside the lock holds up no close for longer than seconds") func hung() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            try await log.append("a")
            let lock = open(path + ".lock", O_RDWR)
            defer { close(lock) }
            #expect(flock(lock, LOCK_EX) == 0)
            log.close()
            #expect(size(path + "-wal") > 0)
            #expect(flock(lock, LOCK_UN) == 0)
            let found = try look(path)
            #expect(found.notice == nil && found.texts == ["a"])
        }
    }

    @Test("a command leaves all its data in the main file if no other program has it open") func writesMainFile()
        async throws
    {
        try await withFolder { folder in
            let (path, alone) = (folder + "/log.db", folder + "/alone.db")
            let store = SQLiteLogStore(path: path)
            try store.create(Epoch(0xa), partitions: 2)
            try store.advance(to: CurrentLog(epoch: Epoch(0xa), partitions: 2, number: 0))
            try files.copyItem(atPath: path, toPath: alone)
            #expect(try SQLiteLogStore(path: alone).current()?.epoch == Epoch(0xa))
        }
    }

    // MARK: Moved, copied and restored files

    @Test("a file that was moved, with its folder or within it, is the same", arguments: ["other.db", "sub/log.db"])
    func moved(_ name: String) async throws {
        try await withFolder { folder in
            try await make(folder + "/log.db", ["a"])
            try files.createDirectory(atPath: folder + "/sub", withIntermediateDirectories: false)
            try files.moveItem(atPath: folder + "/log.db", toPath: folder + "/" + name)
            let found = try look(folder + "/" + name)
            #expect(found.notice == nil && found.texts == ["a"])
        }
    }

    @Test("a hard link is the same file") func linked() async throws {
        try await withFolder { folder in
            try await make(folder + "/log.db", ["a"])
            try files.linkItem(atPath: folder + "/log.db", toPath: folder + "/link.db")
            let found = try look(folder + "/link.db")
            #expect(found.notice == nil && found.texts == ["a"])
            #expect(try look(folder + "/log.db").notice == nil)
        }
    }

    @Test("a file that is open under one name is refused under another, which would have another WAL")
    func openUnderAnotherName() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            defer { log.close() }
            try await log.append("a")
            try files.linkItem(atPath: folder + "/log.db", toPath: folder + "/link.db")
            let error = #expect(throws: LogError.self) { try SQLiteLog(path: folder + "/link.db") }
            #expect(error?.code == .damaged && error?.message.contains("use that name") == true, "\(error as Any)")
            try SQLiteLog(path: folder + "/log.db").close()
        }
    }

    @Test("a copy opens, and is doubtful until it is accepted, also for a process that has it open")
    func copied() async throws {
        try await withFolder { folder in
            let (path, copy) = (folder + "/log.db", folder + "/copy.db")
            try await make(path, ["a"])
            try files.copyItem(atPath: path, toPath: copy)
            for _ in 0..<2 {
                let found = try look(copy)
                #expect(found.notice?.contains("it was copied, or restored from a backup") == true)
                #expect(found.texts == ["a"])
            }
            #expect(try look(path).notice == nil, "the original is as it was")
            let log = try SQLiteLog(path: copy)
            defer { log.close() }
            let tail = log.tail(0, from: 0, to: CollectingSink())
            defer { tail.cancel() }
            let store = SQLiteLogStore(path: copy)
            #expect(try store.accept()?.contains("it was copied") == true)
            try await eventually("the open log has nothing to say any more") { log.notice == nil }
            #expect(try store.accept() == nil)
            #expect(try SQLiteLog(path: copy).notice == nil)
        }
    }

    @Test("a copy on another file system is doubtful") func otherFileSystem() async throws {
        let other = "/dev/shm/reel-log-\(UUID().uuidString)"
        defer { remove(other) }
        try await withFolder { folder in
            try await make(folder + "/log.db", ["a"])
            try files.copyItem(atPath: folder + "/log.db", toPath: other)
            let found = try look(other)
            #expect(found.notice?.contains("it was copied") == true && found.texts == ["a"])
        }
    }

    @Test("a backup is doubtful that got the inode of the removed file") func sameInode() async throws {
        try await withFolder { folder in
            let (path, backup) = (folder + "/log.db", folder + "/backup.db")
            try await make(path, ["a"])
            try files.copyItem(atPath: path, toPath: backup)
            let (before, bytes) = (try inode(path), try #require(files.contents(atPath: backup)))
            remove(path)
            // Some file systems reuse the inode of a removed file, but rarely for the next new file. So the test
            // creates files until one has that inode.
            var restored = backup
            for number in 0..<3_000 where try inode(restored) != before {
                restored = folder + "/restored-\(number)"
                #expect(files.createFile(atPath: restored, contents: bytes))
            }
            guard try inode(restored) == before else {
                try Test.cancel("no new file got the inode of the removed file, so no reuse was tested")
            }
            try files.moveItem(atPath: restored, toPath: path)
            #expect(try look(path).notice?.contains("it was copied") == true)
        }
    }

    private func inode(_ path: String) throws -> Int? {
        try files.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
    }

    @Test("a backup that is copied into the file in place is doubtful") func inPlace() async throws {
        try await withFolder { folder in
            let (path, backup) = (folder + "/log.db", folder + "/backup.db")
            try await make(path, ["a"])
            try files.copyItem(atPath: path, toPath: backup)
            try await make(path, ["b"])
            try copy(backup, into: path)
            for _ in 0..<4 {
                let found = try look(path)
                #expect(found.notice?.contains("a backup was restored into it") == true)
                #expect(found.texts == ["a"])
            }
            #expect(try SQLiteLogStore(path: path).accept() != nil)
            #expect(try look(path).notice == nil)
        }
    }

    @Test("a file that was left without its WAL is doubtful, since that holds the last records")
    func withoutWAL() async throws {
        try await withFolder { folder in
            let (path, moved) = (folder + "/log.db", folder + "/moved.db")
            try await make(path, ["a"])
            do {
                // This is the state of the file after its process was killed.
                let log = try SQLiteLog(path: path)
                try await log.append("b")
                log.close()
                let connection = try Connection(path: path, mode: .readWrite)
                try connection.execute("UPDATE file SET is_open = 1")
                try connection.checkpoint(.truncate)
            }
            try files.moveItem(atPath: path, toPath: moved)
            #expect(try look(moved).notice?.contains("its -wal, which holds the last records, was missing") == true)
            #expect(try look(moved).notice != nil, "closed in good order, it is doubtful still")
        }
    }

    @Test("a process that is killed leaves nothing doubtful where its file and WAL stay together") func killed()
        async throws
    {
        try await withFolder { folder in
            let (path, kept) = (folder + "/log.db", folder + "/kept.db")
            let log = try SQLiteLog(path: path, partitions: 1)
            try await log.append("a")
            for suffix in ["", "-wal"] {
                try files.copyItem(atPath: path + suffix, toPath: kept + suffix)
            }
            log.close()
            #expect(try look(kept).notice?.contains("it was copied") == true, "and not that its WAL is missing")
            #expect(try look(kept).texts == ["a"])
        }
    }

    @Test("an operator accepts a file, or begins the next epoch in it: then nothing is doubtful") func nextEpoch()
        async throws
    {
        try await withFolder { folder in
            let (path, copy) = (folder + "/log.db", folder + "/copy.db")
            try await make(path, ["a"])
            try files.copyItem(atPath: path, toPath: copy)
            #expect(try look(copy).notice != nil)
            let store = SQLiteLogStore(path: copy)
            let next = CurrentLog(epoch: Epoch(0xb), partitions: 1, number: 1)
            try store.create(next.epoch, partitions: 1)
            #expect(try look(copy).notice != nil, "a log that was made is not the current one yet")
            try store.advance(to: next)
            #expect(try look(copy).notice == nil)
        }
    }

    @Test("a new log in the place of a removed one is no older state of it") func begunAgain() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            for _ in 0..<3 { try await make(path, ["a"]) }
            for suffix in ["", "-wal", "-shm"] { try files.removeItem(atPath: path + suffix) }
            try await make(path, ["b"])
            let found = try look(path)
            #expect(found.notice == nil && found.texts == ["b"])
        }
    }

    @Test("accepting needs a log, and makes none") func acceptNone() async throws {
        try await withFolder { folder in
            for name in ["none", "empty"] {
                if name == "empty" { _ = files.createFile(atPath: folder + "/empty", contents: nil) }
                let error = #expect(throws: LogError.self) { try SQLiteLogStore(path: folder + "/" + name).accept() }
                #expect(error?.code == .badRequest)
                #expect(size(folder + "/" + name) == (name == "empty" ? 0 : -1))
            }
        }
    }

    // MARK: Incomplete files

    @Test("a young log copied without its WAL holds its epoch; a file without a table is refused and left as it is")
    func young() async throws {
        try await withFolder { folder in
            let (path, alone, bare) = (folder + "/log.db", folder + "/alone.db", folder + "/bare.db")
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            try await log.append("a")
            try files.copyItem(atPath: path, toPath: alone)
            let found = try SQLiteLog(path: alone)
            defer { found.close() }
            #expect(found.epoch == log.epoch && found.notice != nil)
            // An older build left such a file before its first checkpoint.
            try Connection(path: bare, mode: .create).execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL")
            #expect(size(bare) == 8192)
            let before = files.contents(atPath: bare)
            for makes in [true, false] {
                let error = #expect(throws: LogError.self) {
                    if makes { _ = try SQLiteLog(path: bare) } else { _ = try SQLiteLogStore(path: bare).current() }
                }
                #expect(error?.code == .damaged && error?.message.contains("without its -wal") == true)
            }
            #expect(files.contents(atPath: bare) == before)
        }
    }

    @Test("a file of version 2 opens, with its records, and is the one that it is") func version2() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            try await make(path, ["a"])
            try Connection(path: path, mode: .readWrite).execute("DROP TABLE file; PRAGMA user_version = 2")
            try files.removeItem(atPath: path + ".lock")
            #expect(try SQLiteLogStore(path: path).current() != nil)
            let found = try look(path)
            #expect(found.notice == nil && found.texts == ["a"])
            try files.copyItem(atPath: path, toPath: folder + "/copy.db")
            #expect(try look(folder + "/copy.db").notice != nil)
        }
    }
}
