import Testing

@testable import ReelCheck

/// Tests runs with tens of thousands of lines, in which almost every line is a violation, or none is.
@Suite(.timeLimit(.minutes(5))) struct ManyViolationsTests {
    private static let frames = 40_000

    /// Returns a run whose reader gets 40,000 frames of one seq each, with the events that the function returns.
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

    @Test("of very many only a few are shown", arguments: [true, false]) func ofVeryManyOnly(isEmpty: Bool) async throws
    {
        let run = run { isEmpty ? "" : #"[\#($0),1,\#($0),"0123456789abcdef"]"# }
        let verdict = try await run.verdict()
        #expect(verdict.counts.reduce(0) { $0 + $1.violations } == Self.frames)
        #expect(verdict.violations.count == 5)
        #expect(verdict.violations.allSatisfy { $0.lines.count == 2 }, "\(verdict.text)")
    }

    @Test("as many that are right are none") func asManyThatAre() async throws {
        let run = run { seq in
            #"[\#(seq),1,\#(seq),"\#(RecordedRun.hash(RecordedRun.event(site: 1, op: seq)))"]"#
        }
        let verdict = try await run.verdict()
        #expect(verdict.counts.allSatisfy { $0.violations == 0 }, "\(verdict.text)")
    }
}
