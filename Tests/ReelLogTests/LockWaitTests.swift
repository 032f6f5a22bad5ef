import EventLogConformance
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ReelLog

/// Tests the reports about waits for the lock of a log's file.
@Suite(.timeLimit(.minutes(5)))
struct LockWaitTests {
    private final class Reports: Sendable {
        private let list = Mutex<[LockWait]>([])
        var all: [LockWait] { list.withLock { $0 } }
        func add(_ wait: LockWait) { list.withLock { $0.append(wait) } }
    }

    /// A thread that runs a blocking function.
    private final class Work: Sendable {
        private let isOver = Atomic(false)

        init(_ body: @escaping @Sendable () -> Void) {
            Thread.detachNewThread { [self] in
                body()
                isOver.store(true, ordering: .releasing)
            }
        }

        func ends() async throws { try await eventually("it ends") { isOver.load(ordering: .acquiring) } }
    }

    /// A thread that holds a lock until `letGo` is called.
    private final class Holder: Sendable {
        private let isHeld = Atomic(false)
        private let release = DispatchSemaphore(value: 0)

        init(_ lock: FileLock) async throws {
            Thread.detachNewThread { [self] in
                lock.whileHeld {
                    isHeld.store(true, ordering: .relaxed)
                    release.wait()
                }
            }
            try await eventually("it is held") { isHeld.load(ordering: .relaxed) }
        }

        func letGo() { release.signal() }
    }

    private final class Inside: Sendable {
        private let count = Atomic(0)
        func add() -> Int { count.add(1, ordering: .relaxed).newValue }
        func remove() { count.subtract(1, ordering: .relaxed) }
    }

    @Test("a wait of more than a second is reported, and so is its end") func longWait() async throws {
        try await withFolder { folder in
            let (path, reports) = (folder + "/lock", Reports())
            let (other, own) = (try FileLock(path: path), try FileLock(path: path) { reports.add($0) })
            for round in 1...2 {
                let holder = try await Holder(other)
                let waiter = Work { own.whileHeld {} }
                try await eventually("the wait is reported") { reports.all.count == 2 * round - 1 }
                holder.letGo()
                try await waiter.ends()
                let told = reports.all.suffix(2)
                #expect(told.map(\.isOver) == [false, true])
                #expect(told.allSatisfy { $0.file == path && $0.waited >= LockWait.reported })
            }
            #expect(reports.all.count == 4)
        }
    }

    @Test("short waits are not reported") func shortWaits() async throws {
        try await withFolder { folder in
            let (path, reports) = (folder + "/lock", Reports())
            let inside = Inside()
            let locks = try (0..<4).map { _ in try FileLock(path: path) { reports.add($0) } }
            let users = locks.map { lock in
                Work {
                    for _ in 0..<200 {
                        lock.whileHeld {
                            #expect(inside.add() == 1, "one at a time")
                            inside.remove()
                        }
                    }
                }
            }
            for user in users { try await user.ends() }
            #expect(reports.all.allSatisfy { $0.waited >= LockWait.reported })
        }
    }

    @Test("a log that is opened or written while another process holds the lock reports it") func log() async throws {
        try await withFolder { folder in
            let (path, reports) = (folder + "/log.sqlite", Reports())
            try SQLiteLog(path: path, partitions: 1).close()
            let other = try FileLock(path: path + ".lock")
            let holder = try await Holder(other)
            let works = [
                Work { (try? SQLiteLog(path: path) { reports.add($0) })?.close() },
                Work { _ = try? SQLiteLogStore(path: path) { reports.add($0) }.current() },
            ]
            try await eventually("both are reported") { reports.all.count == 2 }
            #expect(reports.all.allSatisfy { !$0.isOver && $0.file == path + ".lock" })
            holder.letGo()
            for work in works { try await work.ends() }
            #expect(reports.all.count { $0.isOver } == 2)
        }
    }
}
