import Testing

@testable import ReelCheck

/// What is lost between the end of an epoch and the beginning of the next one is found where both dumps are there.
@Suite struct InheritanceTests {
    private static let next = "00000000000000bb"

    /// The small run, whose epoch ends, with a dump of the next one that holds these records.
    private func run(_ records: [(key: String, value: String)]) -> RecordedRun {
        var run = RecordedRun()
        run.log[0].append(("~reel", #"{"end":"\#(Self.next)","type":"barrier"}"#))
        var dump = RecordedRun()
        dump.log = [records]
        run.files["log-\(Self.next).jsonl"] = dump.dump()
        run.histories["driver"]! += [run.connect().replacing(RecordedRun.epoch, with: Self.next)]
        return run
    }

    private func site(op: Int) -> (key: String, value: String) {
        ("s", #"{"line":{"end":-1,"op":\#(op),"site":"\#(RecordedRun.site(1))"},"type":"seed"}"#)
    }

    private func object(_ value: Int) -> (key: String, value: String) {
        let site = RecordedRun.site(1)
        let line = #"{"fields":{"n":[\#(value),"\#(site)"]},"object":["m","\#(site)"]}"#
        return ("s", #"{"line":\#(line),"type":"seed"}"#)
    }

    private let open = (key: "~reel", value: #"{"open":true,"type":"barrier"}"#)

    private func verdict(_ run: RecordedRun) async throws -> Verdict {
        try await run.verdict(logName: "log-\(RecordedRun.epoch).jsonl")
    }

    @Test func anEpochThatBeginsAsTheOneBeforeEndedIsValidWhateverFollows() async throws {
        let after = (key: "s", value: RecordedRun.event(site: 2, op: 0, base: 2))
        let verdict = try await verdict(run([site(op: 5), object(5), open, after]))
        #expect(verdict.word == .valid, "\(verdict.text)")
        #expect(verdict.counts.contains { $0.invariant == .inheritance && $0.facts == 1 })
    }

    @Test func whatIsLostOrChangedOnTheWayIsFound() async throws {
        for (seeds, what) in [
            ([site(op: 5)], "object m/"), ([site(op: 5), object(4)], "object m/"), ([object(5)], "site "),
            ([site(op: 4), object(5)], "site "), ([], "object m/"),
        ] {
            let verdict = try await verdict(run(seeds + [open]))
            #expect(verdict.word == .invalid, "\(verdict.text)")
            #expect(verdict.violations.map(\.invariant) == [.inheritance])
            #expect(verdict.violations.first?.sentence.contains(what) == true, "\(verdict.text)")
            #expect(verdict.violations.first?.lines.count == 2, "\(verdict.text)")
        }
    }

    @Test func aDumpThatEndsInsideTheSeedsProvesNothing() async throws {
        let verdict = try await verdict(run([site(op: 5)]))
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }
}
