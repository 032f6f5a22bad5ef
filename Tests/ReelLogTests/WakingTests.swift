import EventLogConformance
import Foundation
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ReelLog

/// Tests how the tails of an SQLite log are notified of commits, of this process and of others.
@Suite(.timeLimit(.minutes(5)))
struct WakingTests {
    private func isRung(_ watch: CommitNotifications) -> Bool {
        var waiting = pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 0) == 1
    }

    /// Returns a sink that waits at a gate with its first batch.
    private func sinkHeldAtItsFirstBatch() -> (CollectingSink, Gate) {
        let gate = Gate()
        return (CollectingSink { _ in gate.pass() }, gate)
    }

    /// A gate that blocks the first caller until it is opened.
    private final class Gate: Sendable {
        private let hasCome = Mutex(false)
        private let opening = DispatchSemaphore(value: 0)

        /// True if a caller has reached the gate.
        var isReached: Bool { hasCome.withLock { $0 } }

        func pass() {
            let isFirst = hasCome.withLock { hasCome in
                defer { hasCome = true }
                return !hasCome
            }
            if isFirst { opening.wait() }
        }

        func open() { opening.signal() }
    }

    @Test("a file lock notifies listeners only if another user of the file listens") func notifiesOtherListeners()
        async throws
    {
        try await withFolder { folder in
            let (own, other) = (try FileLock(path: folder + "/lock"), try FileLock(path: folder + "/lock"))
            let watch = try own.listen()
            own.ring()
            #expect(!isRung(watch))
            other.ring()
            #expect(isRung(watch))
            watch.silence()
            let late = try FileLock(path: folder + "/lock")
            let heard = try late.listen()
            own.ring()
            #expect(isRung(heard))
            withExtendedLifetime(late) {}
        }
    }

    @Test("where no bell can be heard, another's commits are read at the next of one's own, and not late")
    func withoutInotify() async throws {
        try await withFolder { folder in
            let other = try SQLiteLog(path: folder + "/log.db", partitions: 2)
            defer { other.close() }
            let file = try LogFile(path: folder + "/log.db", partitions: nil, walFrames: 1_024)
            let reader = try LogReader(file, watch: nil)
            defer { reader.close() }
            let writer = try LogWriter(file, checkpointFrames: 1_024) { reader.take($0) }
            defer { writer.close() }
            let sinks = [CollectingSink(), CollectingSink()]
            for partition in 0...1 {
                reader.start(TailHandle(partition: partition, from: 0, sink: sinks[partition]))
            }
            var own = 0
            let rounds = 10
            for round in 1...rounds {
                _ = try await other.append([LogAppend("s", "\(round)")], to: 1)
                // This process commits continuously, because only its own commits wake its reader.
                while sinks[1].count < round {
                    own += 1
                    _ = try await withCheckedThrowingContinuation { continuation in
                        let append = LogAppend("s", "\(own)")
                        writer.hand(
                            over: .append(partition: 0, records: [append]) { continuation.resume(with: $0) }
                        )
                    }
                    try await eventually("its own") { sinks[0].count == own }
                }
            }
            #expect(own <= 20 * rounds, "the look at the file once a second is not what found them")
        }
    }

    @Test("a failed listen closes its descriptor only once, because another thread may reuse it") func closedOnce()
        throws
    {
        let path = FileManager.default.temporaryDirectory.path + "/reel-lock-\(UUID().uuidString)"
        let lock = try FileLock(path: path)
        try FileManager.default.removeItem(atPath: path)
        let state = Mutex((isOver: false, opened: 0, lost: 0))
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !state.withLock({ $0.isOver }) {
                let descriptor = open("/dev/null", O_RDONLY)
                let isLost = descriptor >= 0 && close(descriptor) != 0
                state.withLock { ($0.opened, $0.lost) = ($0.opened + 1, $0.lost + (isLost ? 1 : 0)) }
            }
            done.signal()
        }
        while state.withLock({ $0.opened < 50_000 }) { if (try? lock.listen()) != nil { Issue.record("it listens") } }
        state.withLock { $0.isOver = true }
        done.wait()
        #expect(state.withLock { $0.lost } == 0)
    }

    @Test("two logs on one file that write at the same time: the tails of both have all, once and in order")
    func both() async throws {
        try await withFolder { folder in
            let logs = [try SQLiteLog(path: folder + "/log.db"), try SQLiteLog(path: folder + "/log.db")]
            defer { for log in logs { log.close() } }
            let asks = Atomic(0)
            // With this, the committing thread delivers some of the batches.
            let sinks = logs.map { _ in
                (0...1).map { _ in
                    CollectingSink(ready: { asks.wrappingAdd(1, ordering: .relaxed).newValue % 3 > 0 })
                }
            }
            for (log, sinks) in zip(logs, sinks) {
                for partition in 0...1 { _ = log.tail(partition, from: 0, to: sinks[partition]) }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, log) in logs.enumerated() {
                    group.addTask {
                        for i in 0..<200 {
                            _ = try await log.append([LogAppend("s", "\(number) \(i)")], to: i % 2)
                        }
                    }
                }
                try await group.waitForAll()
            }
            for sink in sinks.joined() {
                try await eventually("all records") { sink.count >= 200 }
                #expect(sink.records.map(\.seq) == Array(0..<200))
                #expect(sink.error == nil)
            }
            #expect(sinks[0].map(\.texts) == sinks[1].map(\.texts))
        }
    }

    @Test("the writer thread delivers small commits to a ready sink, and the reader thread delivers all others")
    func choosesDeliveryThread() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            defer { log.close() }
            let names = Mutex<[String]>([])
            let hasRoom = Mutex(true)
            let sink = CollectingSink { _ in
                let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
                names.withLock { $0.append(name?.trimmingCharacters(in: .newlines) ?? "") }
            } ready: {
                hasRoom.withLock(\.self)
            }
            _ = log.tail(0, from: 0, to: sink)
            // The reader reads records from the file if they were committed before the tail began.
            try await eventually("the tail has begun, and the writer delivers") {
                _ = try await log.append([LogAppend("s", "x")], to: 0)
                return names.withLock(\.last) == "reel-log-write"
            }
            let (before, batches) = (sink.count, names.withLock(\.count))
            hasRoom.withLock { $0 = false }
            _ = try await log.append([LogAppend("s", "y")], to: 0)
            try await eventually("it is delivered") { names.withLock(\.count) == batches + 1 }
            #expect(names.withLock(\.last) == "reel-log-read")
            // The reader delivers groups of more than 64 records.
            hasRoom.withLock { $0 = true }
            _ = try await log.append((0..<65).map { LogAppend("s", "\($0)") }, to: 0)
            try await eventually("all are delivered") {
                names.withLock(\.count) > batches + 1 && sink.count == before + 66
            }
            #expect(names.withLock(\.last) == "reel-log-read")
            let large = String(repeating: "x", count: 64 << 10)
            _ = try await log.append([LogAppend("s", large)], to: 0)
            try await eventually("it is delivered") { sink.count == before + 67 }
            #expect(names.withLock(\.last) == "reel-log-read")
            #expect(sink.records.map(\.seq) == Array(0..<Seq(sink.count)))
        }
    }

    @Test("a tail for which too much was committed meanwhile does not wait until more is committed for it")
    func dropped() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 2)
            defer { log.close() }
            let (busy, gate) = sinkHeldAtItsFirstBatch()
            let other = CollectingSink()
            _ = log.tail(0, from: 0, to: busy)
            _ = log.tail(1, from: 0, to: other)
            // Wait until both tails have begun. From then on, committed batches wait in memory for them.
            _ = try await log.append([LogAppend("s", "x")], to: 1)
            try await eventually("the other tail's first record") { other.count == 1 }
            _ = try await log.append([LogAppend("s", "0")], to: 0)
            try await eventually("the reader is held up") { gate.isReached }
            // The limit is 64 waiting batches. It is exceeded now, so the next commit drops them.
            for i in 0..<65 { _ = try await log.append([LogAppend("s", "\(i)")], to: 1) }
            _ = try await log.append([LogAppend("s", "1")], to: 0)
            gate.open()
            for i in 2..<6 {
                try await eventually("the record before") { busy.count == i }
                _ = try await log.append([LogAppend("s", "\(i)")], to: 0)
            }
            #expect(other.count == 66)
        }
    }

    @Test("a tail with a busy sink misses no record of many commits") func busySink() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            defer { log.close() }
            let (sink, gate) = sinkHeldAtItsFirstBatch()
            _ = log.tail(0, from: 0, to: sink)
            _ = try await log.append([LogAppend("s", "0")], to: 0)
            try await eventually("the sink is busy") { gate.isReached }
            // These are more batches than may wait in memory for the tails.
            for i in 1..<300 { _ = try await log.append([LogAppend("s", "\(i)")], to: 0) }
            #expect(sink.count == 1)
            gate.open()
            try await eventually("all records") { sink.count >= 300 }
            #expect(sink.texts == (0..<300).map { "\($0)" })
        }
    }
}
