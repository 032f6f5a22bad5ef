import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelSQLite
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SQLiteLogTests {
    @Test("a reopened log keeps its epoch and records, and appends continue") func reopens() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 2)
            #expect(log.partitions == 2)
            try await log.append("a", "b", to: 1)
            let epoch = log.epoch
            log.close()
            let again = try SQLiteLog(path: folder + "/log.db")
            defer { again.close() }
            #expect(again.epoch == epoch && again.partitions == 2)
            #expect(try await again.append("c", to: 1) == [2])
            #expect(try again.read(1, from: 0, to: 9, bytes: 99).seen.map(\.text) == ["a", "b", "c"])
        }
    }

    @Test("without a number a log has four partitions; another number later is an error that names both")
    func partitions() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db")
            defer { log.close() }
            #expect(log.partitions == 4)
            let error = #expect(throws: LogError.self) { try SQLiteLog(path: folder + "/log.db", partitions: 8) }
            #expect(error?.message.contains("found a log with 4 partitions, expected 8") == true)
            for number in [0, -1, 1025] {
                #expect(throws: LogError.self) { try SQLiteLog(path: folder + "/new.db", partitions: number) }
            }
        }
    }

    @Test("many openers at once: one makes the log, all have it") func race() async throws {
        try await withFolder { folder in
            let epochs = try await withThrowingTaskGroup(of: Epoch.self) { group in
                for i in 0..<8 {
                    group.addTask {
                        let log = try SQLiteLog(path: folder + "/log.db", partitions: 3, checkpointFrames: 4)
                        defer { log.close() }
                        try await log.append("\(i)")
                        return log.epoch
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(epochs.count == 1)
            let log = try SQLiteLog(path: folder + "/log.db")
            defer { log.close() }
            #expect(try log.bounds(0).last == 7)
        }
    }

    @Test("two logs on one file: each reads what the other appends, at once") func twoLogs() async throws {
        try await withFolder { folder in
            let first = try SQLiteLog(path: folder + "/log.db")
            let second = try SQLiteLog(path: folder + "/log.db")
            defer {
                first.close()
                second.close()
            }
            let arrived = Mutex(ContinuousClock.now)
            let sink = CollectingSink { _ in arrived.withLock { $0 = .now } }
            _ = second.tail(0, from: 0, to: sink)
            try await first.append("warm")
            try await eventually("the first record") { sink.count == 1 }
            // The check that runs once a second would find the records too, and it has just run. One notification that
            // is faster proves that notifications work; a busy machine may delay the others.
            var fastest = Duration.seconds(100)
            var count = 1
            while count <= 20 || count <= 100 && fastest >= .milliseconds(500) {
                let start = ContinuousClock.now
                try await first.append("\(count)")
                try await eventually("record \(count)") { arrived.withLock { $0 } > start && sink.count == count + 1 }
                fastest = min(fastest, arrived.withLock { $0 } - start)
                count += 1
            }
            #expect(fastest < .milliseconds(500))
            #expect(try await second.append("x") == [Seq(count)])
        }
    }

    @Test("appends that come while one is committed become one row") func groups() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            let answered = Mutex(0)
            // The first answer blocks further commits until all records are handed over.
            let gate = DispatchSemaphore(value: 0)
            log.append([LogAppend("s", "x")], to: 0) { _ in
                gate.wait()
                answered.withLock { $0 += 1 }
            }
            for _ in 1..<1000 {
                log.append([LogAppend("s", "x")], to: 0) { _ in answered.withLock { $0 += 1 } }
            }
            gate.signal()
            try await eventually("1000 answers") { answered.withLock { $0 == 1000 } }
            log.close()
            let file = try Connection(path: folder + "/log.db", mode: .readOnly)
            let rows = try file.integer("SELECT count(*) FROM records_0") ?? 0
            #expect(rows < 500)
            #expect(try file.integer("SELECT sum(count) FROM records_0") == 1000)
        }
    }

    // MARK: Files without a usable log

    private func failure(_ path: String) -> LogError? {
        #expect(throws: LogError.self) { try SQLiteLog(path: path) }
    }

    @Test("a file of another kind is named and left as it is", arguments: ["", "hello", "folder", "sqlite", "version"])
    func otherKinds(_ kind: String) async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let files = FileManager.default
            switch kind {
            case "folder":
                try files.createDirectory(atPath: path, withIntermediateDirectories: false)
            case "sqlite":
                try Connection(path: path, mode: .create).execute("CREATE TABLE t (a)")
            case "version":
                try SQLiteLog(path: path).close()
                try Connection(path: path, mode: .readWrite).execute("PRAGMA user_version = 9")
            default:
                let text = String(repeating: kind, count: 1000)
                try text.write(toFile: path, atomically: true, encoding: .utf8)
            }
            guard kind != "" else {
                // A crash before the first transaction leaves an empty file.
                try SQLiteLog(path: path).close()
                return
            }
            let before = files.contents(atPath: path)
            #expect(failure(path)?.code == .damaged)
            #expect(files.contents(atPath: path) == before)
        }
    }

    @Test("a folder that is not there or cannot be written is named") func folders() async throws {
        try await withFolder { folder in
            let error = failure(folder + "/none/log.db")
            #expect(error?.code == .logUnavailable)
            #expect(error?.message.contains("folder") == true)
        }
    }

    /// Creates a log of 100 records, closes it, and lets `change` damage the bytes of the file.
    private func damaged(_ folder: String, with change: (inout Data) -> Void) async throws -> String {
        let path = folder + "/log.db"
        let log = try SQLiteLog(path: path, partitions: 1, checkpointFrames: 1)
        for i in 0..<100 { try await log.append("a record of some length, number \(i)") }
        log.close()
        var bytes = try #require(FileManager.default.contents(atPath: path))
        change(&bytes)
        try bytes.write(to: URL(fileURLWithPath: path))
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        return path
    }

    @Test("a flipped byte in a record is an error at that record, for reads and tails") func flipped() async throws {
        try await withFolder { folder in
            let path = try await damaged(folder) { bytes in
                let place = bytes.range(of: Data("number 50".utf8))!
                bytes[place.lowerBound] ^= 1
            }
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            #expect(try log.read(0, from: 49, to: 49, bytes: 1).entries.count == 1)
            let error = #expect(throws: LogError.self) { try log.read(0, from: 50, to: 50, bytes: 1) }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("seq 50") == true)
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            try await eventually("an error") { sink.error?.code == .damaged }
        }
    }

    @Test("zeroed pages are an error, not a shorter log") func zeroed() async throws {
        try await withFolder { folder in
            let path = try await damaged(folder) { bytes in
                bytes.replaceSubrange(8192..<bytes.count, with: Data(count: bytes.count - 8192))
            }
            let error = #expect(throws: LogError.self) {
                let log = try SQLiteLog(path: path)
                defer { log.close() }
                _ = try log.read(0, from: 0, to: 99, bytes: 1 << 20)
            }
            #expect(error?.code == .damaged)
        }
    }

    @Test("a log reports a row with a seq beyond the maximum as damage to readers and writers")
    func reportsExcessiveSeq()
        async throws
    {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            try await log.append("0")
            try Connection(path: path, mode: .readWrite)
                .execute("UPDATE records_0 SET last = \(Int64.max), count = \(Int64.max)")
            for act in [
                { _ = try log.bounds(0) }, { _ = try log.read(0, from: 0, to: 0, bytes: 1) },
            ] as [() throws -> Void] {
                #expect(#expect(throws: LogError.self) { try act() }?.code == .damaged)
            }
            let error = await #expect(throws: LogError.self) { try await log.append("1") }
            #expect(error?.code == .damaged)
        }
    }

    @Test("rows that are missing are an error, not a jump") func hole() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            for i in 0..<10 { try await log.append("\(i)") }
            try Connection(path: path, mode: .readWrite)
                .execute("DELETE FROM records_0 WHERE last BETWEEN 4 AND 5")
            #expect(try log.read(0, from: 0, to: 9, bytes: 999).seqs == 0..<4)
            let error = #expect(throws: LogError.self) { try log.read(0, from: 4, to: 9, bytes: 999) }
            #expect(error?.code == .damaged)
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            try await eventually("an error") { sink.error?.code == .damaged }
            #expect(sink.count == 4)
        }
    }

    @Test("rows that were trimmed are truncated, which names the first one") func trimmed() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            for i in 0..<10 { try await log.append("\(i)") }
            try Connection(path: path, mode: .readWrite)
                .execute("DELETE FROM records_0 WHERE last < 4")
            #expect(try log.bounds(0) == LogBounds(first: 4, last: 9))
            let error = #expect(throws: LogError.self) { try log.read(0, from: 3, to: 9, bytes: 999) }
            #expect(error?.code == .truncated && error?.seq == 4)
        }
    }

    @Test("a count that is not the row's is damage, not fewer records", arguments: [0, 1, 3, 4, Int64.min, .max])
    func falseCount(_ count: Int64) async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            try await log.append("a", "b")
            try await log.append("c", "d")
            try Connection(path: path, mode: .readWrite)
                .execute("UPDATE records_0 SET count = \(count) WHERE last = 1")
            let error = #expect(throws: LogError.self) { try log.bounds(0) }
            #expect(error?.code == .damaged)
        }
    }

    @Test(
        "a log ignores a damaged position in an announcement and keeps the others",
        arguments: ["0:-2", "0:9007199254740992", "-1:5"]
    )
    func falsePosition(_ position: String) async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
            try log.announce(
                NodeAnnouncement(
                    id: "a",
                    role: "gateway",
                    url: "http://a",
                    advertised: nil,
                    build: "1",
                    positions: [],
                    atMs: now
                )
            )
            try Connection(path: path, mode: .readWrite)
                .execute("UPDATE nodes SET positions = '\(log.epoch) \(position) 1:7'")
            #expect(try log.nodes().map { $0.positions.map(\.seq) } == [[7]])
        }
    }

    @Test("no other program may take itself for the only one that has the file, whatever else is asked of it")
    func locks() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            try await log.append("a")
            #expect(try SQLiteLogStore(path: path).current()?.epoch == log.epoch)
            try SQLiteLog(path: path).close()
            let file = open(path, O_RDWR)
            defer { close(file) }
            // SQLite holds this lock while a WAL is open. The test queries it through another open file.
            var lock = flock()
            (lock.l_type, lock.l_start, lock.l_len) = (Int16(F_WRLCK), 0x4000_0002, 510)
            #expect(fcntl(file, 36, &lock) == 0, "F_OFD_GETLK")
            #expect(lock.l_type == Int16(F_RDLCK))
        }
    }

    @Test("a WAL without its file is no new log") func putAside() async throws {
        try await withFolder { folder in
            let (path, aside) = (folder + "/log.db", folder + "/aside.db")
            let copied = folder + "/copied.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            try await log.append("a")
            // Copy the two files as a killed process leaves them.
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: copied + suffix)
            }
            log.close()
            try FileManager.default.moveItem(atPath: copied, toPath: aside)
            let error = failure(copied)
            #expect(error?.code == .damaged && error?.message.contains("copied.db-wal") == true)
            try FileManager.default.moveItem(atPath: aside, toPath: copied)
            let again = try SQLiteLog(path: copied)
            defer { again.close() }
            #expect(try again.read(0, from: 0, to: 9, bytes: 99).seen.map(\.text) == ["a"])
        }
    }

    @Test("a file removed while it is open takes no more appends, and ends tails", arguments: ["", "-wal"])
    func removed(_ suffix: String) async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db")
            defer { log.close() }
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            try await log.append("a")
            try FileManager.default.removeItem(atPath: folder + "/log.db" + suffix)
            let error = await #expect(throws: LogError.self) { try await log.append("b") }
            #expect(error?.code == .epochChanged)
            try await eventually("the tail ends") { sink.error?.code == .epochChanged }
        }
    }

    @Test("appends fail and leave no records while another program holds a write transaction on the file")
    func strangersTransaction() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            #expect(try await log.append("a") == [0])
            // This connection is not one of Reel's, so it does not use the lock file.
            let stranger = try Connection(path: path, mode: .readWrite)
            try stranger.execute("BEGIN IMMEDIATE")
            let error = await #expect(throws: LogError.self) { try await log.append("b", "c") }
            #expect(error?.code == .logUnavailable, "\(error.debugDescription)")
            #expect(try log.bounds(0).last == 0)
            #expect(try log.read(0, from: 0, to: 9, bytes: 999).seen.map(\.seq) == [0], "reading goes on")
            stranger.rollback()
            #expect(try await log.append("b", "c") == [1, 2])
            try await eventually("all records") { sink.count >= 3 }
            #expect(sink.texts == ["a", "b", "c"])
        }
    }

    @Test("a record too large for a row is refused, the others go through") func tooLarge() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db")
            defer { log.close() }
            let error = await #expect(throws: LogError.self) {
                try await log.append([LogAppend(key: [], value: [UInt8](repeating: 1, count: 16 << 20 + 1))])
            }
            #expect(error?.code == .tooLarge)
            #expect(try await log.append("a") == [0])
        }
    }
}
