import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelSQLite
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LogStoreTests {
    private let first = Epoch(0xa)
    private let second = Epoch(0xb)

    /// Calls `body` with a store of one log, which is the current log.
    private func withStore(_ body: (SQLiteLogStore, _ path: String) async throws -> Void) async throws {
        try await withFolder { folder in
            let store = SQLiteLogStore(path: folder + "/log.db")
            defer { store.close() }
            try store.create(first, partitions: 2)
            try store.advance(to: CurrentLog(epoch: first, partitions: 2, number: 0))
            try await body(store, folder + "/log.db")
        }
    }

    @Test("a store begins without a log, and nothing is made by asking") func empty() async throws {
        try await withFolder { folder in
            let store = SQLiteLogStore(path: folder + "/log.db")
            #expect(try store.current() == nil)
            #expect(throws: LogError.self) { try store.open(first) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            try Data().write(to: URL(filePath: folder + "/log.db"))
            #expect(try store.current() == nil && store.epochs().isEmpty)
            #expect(throws: LogError.self) { try store.open(first) }
            #expect(try Data(contentsOf: URL(filePath: folder + "/log.db")).isEmpty)
            try store.create(first, partitions: 3)
            #expect(try store.epochs() == [first])
            #expect(try store.current() == nil, "a log that was made is not the current one yet")
            let log = try store.open(first)
            defer { log.close() }
            #expect(log.epoch == first && log.partitions == 3)
        }
    }

    @Test("a new log becomes current, and a caller that opens the file gets it") func advancesToNewLog() async throws {
        try await withStore { store, path in
            #expect(try store.current() == CurrentLog(epoch: first, partitions: 2, number: 0))
            try store.create(second, partitions: 5)
            #expect(try store.current()?.epoch == first)
            try store.advance(to: CurrentLog(epoch: second, partitions: 5, number: 1))
            #expect(try SQLiteLogStore(path: path).current() == CurrentLog(epoch: second, partitions: 5, number: 1))
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            #expect(log.epoch == second && log.partitions == 5)
        }
    }

    @Test("a log is made once: with another number of partitions it is an error") func makeAgain() async throws {
        try await withStore { store, _ in
            try store.create(first, partitions: 2)
            let error = #expect(throws: LogError.self) { try store.create(first, partitions: 3) }
            #expect(error?.code == .badRequest)
            #expect(throws: LogError.self) { try store.create(second, partitions: 0) }
            #expect(throws: LogError.self) { try store.open(second) }
        }
    }

    @Test("only the next number makes a log current, and only one of many concurrent attempts succeeds")
    func requiresNextNumber() async throws {
        try await withStore { store, path in
            for number in [-1, 0, 2] {
                try store.create(second, partitions: 2)
                let error = #expect(throws: LogError.self) {
                    try store.advance(to: CurrentLog(epoch: second, partitions: 2, number: number))
                }
                #expect(error?.code == .conflict)
            }
            #expect(throws: LogError.self) {
                try store.advance(to: CurrentLog(epoch: Epoch(0xc), partitions: 2, number: 1))
            }
            let winners = await withTaskGroup(of: Int.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        let (store, epoch) = (SQLiteLogStore(path: path), Epoch(UInt64(0x100 + number)))
                        do {
                            try store.create(epoch, partitions: 1)
                            try store.advance(to: CurrentLog(epoch: epoch, partitions: 1, number: 1))
                            return 1
                        } catch {
                            #expect((error as? LogError)?.code == .conflict)
                            return 0
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(winners == 1)
        }
    }

    @Test("a caller that has the old log open continues with it, beside the new one") func oldLogStaysOpen()
        async throws
    {
        try await withStore { store, path in
            let old = try SQLiteLog(path: path)
            let reader = try store.open(first)
            defer {
                old.close()
                reader.close()
            }
            try await old.append("a", to: 1)
            try store.create(second, partitions: 2)
            try store.advance(to: CurrentLog(epoch: second, partitions: 2, number: 1))
            let new = try SQLiteLog(path: path)
            defer { new.close() }
            #expect(try new.bounds(1) == .empty)
            #expect(try await new.append("z", to: 1) == [0])
            #expect(try await old.append("b", to: 1) == [1])
            #expect(try reader.read(1, from: 0, to: 9, bytes: 99).seen.map(\.text) == ["a", "b"])
            #expect(try new.read(1, from: 0, to: 9, bytes: 99).seen.map(\.text) == ["z"])
        }
    }

    @Test("a file that was made when a file had one log opens, with its records") func version1() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let old = try SQLiteLog(path: path, partitions: 3)
            try await old.append("a", to: 2)
            old.close()
            try Connection(path: path, mode: .readWrite)
                .execute("DROP TABLE control; DROP TABLE file; PRAGMA user_version = 1")
            let store = SQLiteLogStore(path: path)
            #expect(try store.current() == CurrentLog(epoch: old.epoch, partitions: 3, number: 0))
            let log = try SQLiteLog(path: path, partitions: 3)
            defer { log.close() }
            #expect(log.epoch == old.epoch)
            #expect(try log.read(2, from: 0, to: 9, bytes: 99).seen.map(\.text) == ["a"])
        }
    }

    @Test("a deployment is the epoch of its first log, and each later log carries it, however it was made")
    func deployment() async throws {
        try await withStore { store, path in
            #expect(try store.current()?.deployment == Deployment(beginningWith: first))
            try store.create(second, partitions: 2)
            let next = CurrentLog(epoch: second, partitions: 2, number: 1, deployment: Deployment(0xa))
            try store.advance(to: next)
            #expect(try SQLiteLogStore(path: path).current() == next)
        }
        // After a loss, the first log in a file is not the first log of the deployment.
        try await withFolder { folder in
            let store = SQLiteLogStore(path: folder + "/log.db")
            try store.create(second, partitions: 1)
            let next = CurrentLog(epoch: second, partitions: 1, number: 8, deployment: Deployment(0xa))
            try store.advance(to: next)
            #expect(try store.current() == next)
        }
        // A node that creates a log without a store begins a deployment.
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db")
            defer { log.close() }
            let current = try SQLiteLogStore(path: folder + "/log.db").current()
            #expect(current?.deployment == Deployment(beginningWith: log.epoch))
        }
    }

    @Test("a file of an older build has the epoch of its current log for a deployment, and keeps it from then on")
    func deploymentOfAnOlderFile() async throws {
        try await withStore { store, path in
            try store.create(second, partitions: 2)
            // Make the file look like one of an older build.
            try Connection(path: path, mode: .readWrite).execute(
                """
                DROP TABLE deployment; DROP TABLE file; ALTER TABLE log DROP COLUMN hash;
                ALTER TABLE control DROP COLUMN hash; INSERT INTO control VALUES (1, \(second.value));
                PRAGMA user_version = 2
                """
            )
            for _ in 0..<2 {
                #expect(try SQLiteLogStore(path: path).current()?.deployment == Deployment(beginningWith: second))
            }
            let found = try #require(try store.current())
            try store.create(Epoch(0xc), partitions: 2)
            let next = CurrentLog(epoch: Epoch(0xc), partitions: 2, number: 2, deployment: found.deployment)
            try store.advance(to: next)
            #expect(try store.current() == next)
            // An older build created the next log and wrote only `control`. The deployment stays the same.
            try store.create(Epoch(0xd), partitions: 2)
            try Connection(path: path, mode: .readWrite).execute(
                """
                DROP TABLE file; INSERT INTO control VALUES (3, 13, NULL);
                PRAGMA user_version = 2
                """
            )
            #expect(try store.current()?.deployment == found.deployment)
        }
    }
}
