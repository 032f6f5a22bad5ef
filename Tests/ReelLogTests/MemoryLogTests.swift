import EventLogConformance
import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MemoryLogFaults {
    private let down = LogError(.logUnavailable, "down")

    @Test("an append that fails is not in the log") func fails() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        log.onAppend { [down] _, records in records[0].value == [0x62] ? .fail(down) : nil }
        try await log.append("a")
        await #expect(throws: down) { try await log.append("b") }
        try await log.append("c")
        #expect(try log.read(0, from: 0, to: 9, bytes: 999).seen.map(\.text) == ["a", "c"])
    }

    @Test("an append that is answered late is in the log before") func late() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        log.onAppend { _, _ in .late }
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        let answered = Mutex(0)
        log.append([LogAppend("s", "a")], to: 0) { _ in answered.withLock { $0 += 1 } }
        try await eventually("it is read") { sink.count == 1 }
        #expect(answered.withLock { $0 } == 0)
        log.answerLate()
        try await eventually("it is answered") { answered.withLock { $0 == 1 } }
    }

    @Test("an append can be there though its answer is an error") func appendedButFailed() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        log.onAppend { [down] _, _ in .appendedButFailed(down) }
        await #expect(throws: down) { try await log.append("a") }
        #expect(try log.bounds(0).last == 0)
    }

    @Test("an append can be there twice, answered with the second place") func twice() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        log.onAppend { _, _ in .twice }
        #expect(try await log.append("a") == [1])
        #expect(try log.read(0, from: 0, to: 9, bytes: 999).seen.map(\.text) == ["a", "a"])
    }

    @Test("a stalled tail resumes at its last position") func resumesAfterStall() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        let sink = CollectingSink()
        let other = CollectingSink()
        log.stall(0)
        _ = log.tail(0, from: 0, to: sink)
        _ = log.tail(1, from: 0, to: other)
        try await log.append("a", "b")
        try await log.append("x", to: 1)
        try await eventually("the other partition") { other.count == 1 }
        #expect(sink.count == 0)
        log.resume(0)
        try await eventually("it goes on") { sink.texts == ["a", "b"] }
    }

    @Test("a trimmed log returns truncated to a reader below its first seq, and names that seq")
    func truncatesReaderBelow() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        try await log.append("a", "b", "c")
        log.trim(0, before: 2)
        #expect(try log.bounds(0) == LogBounds(first: 2, last: 2))
        let error = #expect(throws: LogError.self) { try log.read(0, from: 1, to: 2, bytes: 99) }
        #expect(error?.code == .truncated && error?.seq == 2)
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        try await eventually("an error") { sink.error?.code == .truncated }
        log.trim(0, before: 3)
        #expect(try await log.append("d") == [3])
    }

    @Test("a recreated log ends its tails with epoch_changed") func recreated() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        try await log.append("a")
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        // Wait until the tail has begun, because later its start position is not checked again.
        try await eventually("a record") { sink.count == 1 }
        log.recreate(Epoch(7))
        try await eventually("an error") { sink.error?.code == .epochChanged }
        #expect(log.epoch == Epoch(7))
        #expect(try await log.append("b") == [0])
    }

    @Test("a tail alone does not detect that a log was rolled back and written again") func rolledBack() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        try await log.append("a", "b", "c")
        try await eventually("three") { sink.count == 3 }
        log.rollBack(0, to: 1)
        #expect(try await log.append("B", "C", "D") == [1, 2, 3])
        try await eventually("the fourth") { sink.count == 4 }
        #expect(sink.texts == ["a", "b", "c", "D"])
    }
}
