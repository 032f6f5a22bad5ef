import Testing

@testable import ReelCheck

/// A run in which nearly every line breaks something is judged about as fast as one in which none does.
@Suite struct ManyViolationsTests {
    private static let frames = 40_000

    /// A reader of so many frames of one seq each, with what each carries.
    private func run(_ events: (Int) -> String) -> RecordedRun {
        var run = RecordedRun()
        run.log = [(0..<Self.frames).map { ("s", RecordedRun.event(site: 1, op: $0)) }]
        (run.histories, run.files) = ([:], [:])
        let begin = [run.connect(), run.subscribed("s", partition: 0, head: -1, after: -1), run.siteLine(1)]
        let frames = (0..<Self.frames).map {
            #"{"e":"events","ms":40,"stream":"s","from":\#($0),"to":\#($0),"events":[\#(events($0))]}"#
        }
        let end = [
            #"{"e":"reached","ms":50,"stream":"s","epoch":"\#(RecordedRun.epoch)","seq":\#(Self.frames - 1)}"#,
            #"{"e":"end","ms":50,"unacked":0}"#,
        ]
        run.histories["reader"] = run.begin("reader") + begin + frames + end
        return run
    }

    private func time(_ run: RecordedRun, violations: Int) async throws -> Duration {
        let clock = ContinuousClock()
        return try await clock.measure {
            let verdict = try await run.verdict()
            #expect(verdict.counts.reduce(0) { $0 + $1.violations } == violations)
            #expect(verdict.violations.count == min(violations, 5))
            #expect(verdict.violations.allSatisfy { $0.lines.count == 2 }, "\(verdict.text)")
        }
    }

    @Test func whatIsNotShownIsNotReadAgain() async throws {
        func event(_ seq: Int, _ hash: String) -> String { #"[\#(seq),1,\#(seq),"\#(hash)"]"# }
        let right = run { event($0, RecordedRun.hash(RecordedRun.event(site: 1, op: $0))) }
        let valid = try await time(right, violations: 0)
        let other = try await time(run { event($0, "0123456789abcdef") }, violations: Self.frames)
        let empty = try await time(run { _ in "" }, violations: Self.frames)
        let most = valid * 4 + .seconds(2)
        #expect(other < most, "\(other), where a valid run takes \(valid)")
        #expect(empty < most, "\(empty), where a valid run takes \(valid)")
    }
}
