import Testing

@testable import ReelCheck

/// Tests that records after a barrier that the checker does not know prove nothing, and that earlier records do.
@Suite struct UnknownBarrierTests {
    private static let barriers = [
        #"{"fold":2,"type":"barrier"}"#, #"{"more":1,"type":"barrier"}"#, #"{"fold":1e999,"type":"barrier"}"#,
    ]

    /// Returns the small run with an unknown barrier at seq 6 and an event after it that only a later fold understands.
    private func run(_ barrier: String) -> RecordedRun {
        var run = RecordedRun()
        run.log[0] += [("~reel", barrier), ("s", RecordedRun.event(site: 2, op: 0, base: 5))]
        return run
    }

    private func expectUnknown(_ run: RecordedRun, _ word: String, at place: String) async throws {
        let verdict = try await run.verdict()
        #expect(verdict.word == .unknown, "\(verdict.text)")
        #expect(verdict.reasons.contains { $0.contains(word) && $0.contains(place) }, "\(verdict.text)")
    }

    @Test("the checker does not verify a state after an unknown barrier", arguments: barriers)
    func skipsStateAfterBarrier(barrier: String) async throws {
        for seq in 6...7 {
            var run = run(barrier)
            run.histories["driver"]!.append(state(seq: seq))
            try await expectUnknown(run, "barrier that this checker does not know", at: "driver.history.jsonl:3")
        }
    }

    @Test("the checker does not verify a snapshot after an unknown barrier", arguments: barriers)
    func skipsSnapshotAfterBarrier(barrier: String)
        async throws
    {
        var run = run(barrier)
        let snapshot = try #require(run.files["s.snapshot.jsonl"])
        run.files["late.snapshot.jsonl"] = snapshot.replacing(#""seq":5,"si"#, with: #""seq":7,"si"#)
            .replacing(#""n":[5,"#, with: #""n":[6,"#)
        try await expectUnknown(run, "barrier that this checker does not know", at: "late.snapshot.jsonl:1")
    }

    @Test("the checker verifies a state before an unknown barrier", arguments: barriers)
    func verifiesStateBeforeBarrier(barrier: String) async throws {
        #expect(try await run(barrier).verdict().word == .valid)
        var run = run(barrier)
        run.histories["driver"]!.append(state(seq: 5))
        let verdict = try await run.verdict()
        #expect(verdict.violations.map(\.invariant) == [.digest], "\(verdict.text)")
    }

    @Test("an event that a client sends again after an unknown barrier may be consumed") func resendMayBeConsumed()
        async throws
    {
        var run = run(Self.barriers[0])
        // Op 5 overtook op 4, and both were resent.
        run.log[0][4] = ("s", RecordedRun.event(site: 1, op: 3))
        run.log[0][7] = ("s", RecordedRun.event(site: 1, op: 4))
        run.log[0].append(("s", RecordedRun.event(site: 1, op: 5)))
        run.histories["publisher"] = run.histories["publisher"]!.map { $0.replacing("[[1,4,4]]", with: "[[1,4,7]]") }
        (run.histories["reader"], run.histories["driver"], run.files) = (nil, nil, [:])
        try await expectUnknown(run, "whether an acked event is consumed", at: "log.jsonl:6")
    }

    private func state(seq: Int) -> String {
        #"{"e":"state","ms":60,"stream":"s","epoch":"\#(RecordedRun.epoch)","seq":\#(seq),"#
            + #""digest":"0123456789abcdef","of":"http://a:1"}"#
    }
}
