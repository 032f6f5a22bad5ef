import EventLogConformance
import ReelCore
import ReelLog
import TestSupport
import Testing

@Suite struct TailVerifierTests {
    /// Reads a partition up to its end in batches of three records.
    private func read(_ log: MemoryLog, _ verifier: inout TailVerifier) throws {
        while true {
            let batch = try log.read(0, from: verifier.next, to: verifier.next + 2, bytes: 1 << 20)
            guard !batch.seqs.isEmpty else { return }
            try verifier.take(batch)
        }
    }

    private func append(_ log: MemoryLog, _ texts: String..., witness: Witness?) async throws {
        try await log.append(texts.map { event($0, witness: witness) })
    }

    private func event(_ text: String, witness: Witness? = nil) -> LogAppend {
        let site = Site(high: 1, low: 1)
        let event = EventText.logged("insert", site, 0, model: "m", id: "a", fields: #"{"t":"\#(text)"}"#)
        return LogAppend("s", event.text, witness: witness)
    }

    private func verifier(next: Seq = 0, last: Witness? = nil) -> TailVerifier {
        TailVerifier(PartitionRules(partition: 0, of: 1), next: next, last: last)
    }

    @Test("a log that only grows agrees") func grows() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        var gateway = verifier()
        var reader = verifier()
        for i in 0..<50 {
            try await append(log, "\(i)", "\(i)+", witness: gateway.last)
            try read(log, &gateway)
            if i % 3 == 0 { try read(log, &reader) }
        }
        #expect(reader.agreed >= 90)
        #expect(gateway.last?.seq == 99)
    }

    @Test("a log that was rolled back and written again is met within a batch") func rolledBack() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        var reader = verifier()
        for i in 0..<10 {
            try await append(log, "\(i)", witness: reader.last)
            try read(log, &reader)
        }
        log.rollBack(0, to: 6)
        var gateway = verifier()
        try read(log, &gateway)
        for i in 6..<12 {
            try await append(log, "other \(i)", witness: gateway.last)
            try read(log, &gateway)
        }
        let error = #expect(throws: LogError.self) { try read(log, &reader) }
        #expect(error?.code == .diverged)
        #expect(error?.seq == 8)
        #expect(reader.next == 10)
    }

    @Test("a verifier reports divergence if a record's witness is not before the record itself")
    func rejectsFutureWitness()
        async throws
    {
        let log = try MemoryLog()
        defer { log.close() }
        try await append(log, "a", witness: Witness(seq: 0, hash: 1))
        var reader = verifier()
        let error = #expect(throws: LogError.self) { try read(log, &reader) }
        #expect(error?.code == .diverged)
    }

    @Test("a verifier also compares witnesses with the one from before a restart") func comparesAfterRestart()
        async throws
    {
        let log = try MemoryLog()
        defer { log.close() }
        var gateway = verifier()
        try await append(log, "a", "b", witness: nil)
        try read(log, &gateway)
        try await append(log, "c", witness: gateway.last)
        var same = verifier(next: 2, last: gateway.last)
        try read(log, &same)
        #expect(same.agreed == 1)
        var other = verifier(next: 2, last: Witness(seq: 1, hash: 7))
        #expect(throws: LogError.self) { try read(log, &other) }
    }

    @Test("a batch that does not follow is refused, and nothing of it is taken") func contiguity() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        try await append(log, "a", "b", "c", witness: nil)
        var reader = verifier()
        #expect(throws: LogError.self) { try reader.take(try log.read(0, from: 1, to: 2, bytes: 99)) }
        #expect(throws: LogError.self) { try reader.take(try log.read(1, from: 0, to: 2, bytes: 99)) }
        #expect(reader.next == 0 && reader.last == nil)
        try read(log, &reader)
        #expect(reader.next == 3)
    }

    @Test("a verifier ignores a witness that is older than its memory") func ignoresOldWitness() async throws {
        let log = try MemoryLog()
        defer { log.close() }
        var reader = verifier()
        try await log.append((0..<3000).map { event("\($0)") })
        try read(log, &reader)
        try await append(log, "x", witness: Witness(seq: 5, hash: 1))
        try read(log, &reader)
        #expect(reader.agreed == .none)
        try await append(log, "y", witness: Witness(seq: 2500, hash: 1))
        #expect(throws: LogError.self) { try read(log, &reader) }
    }

    @Test("a verifier ignores the witnesses of void records and checks those of valid records beside them")
    func ignoresVoidWitness() async throws {
        let wrong = Witness(seq: 0, hash: 1)
        let misplaced = LogAppend(key: Array("~s".utf8), value: event("x").value, witness: wrong)
        let barrier = LogAppend("~reel", #"{"end":"0000000000000077","type":"barrier"}"#)
        let void = [LogAppend("s", "text", witness: wrong), misplaced, LogAppend("~reel", "text", witness: wrong)]
        for records in [void, [barrier, event("y", witness: wrong)]] {
            let log = try MemoryLog()
            defer { log.close() }
            var reader = verifier()
            try await log.append([event("a")])
            try await log.append(records)
            try reader.take(try log.read(0, from: 0, to: 9, bytes: 1 << 20))
            try await log.append(records)
            try read(log, &reader)
            #expect(reader.next == Seq(1 + 2 * records.count))
        }
        let log = try MemoryLog()
        defer { log.close() }
        var reader = verifier()
        try await log.append([event("a")])
        try await log.append(void + [event("b", witness: wrong)] + void)
        #expect(throws: LogError.self) { try reader.take(try log.read(0, from: 0, to: 9, bytes: 1 << 20)) }
    }
}
