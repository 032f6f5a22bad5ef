import Testing

@testable import ReelCheck

/// What is lost between the end of an epoch and the beginning of the next one is found where both dumps are there.
@Suite struct InheritanceTests {
    private static let next = "00000000000000bb"

    /// The small run, whose epoch ends, with a dump of the next one that holds these records.
    private func run(_ records: [(key: String, value: String)], ends: Bool = true) -> RecordedRun {
        var run = RecordedRun()
        if ends { run.log[0].append(("~reel", #"{"end":"\#(Self.next)","type":"barrier"}"#)) }
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

    @Test func whoNeverGoesOverToTheNextEpochIsStuck() async throws {
        let after = (key: "s", value: RecordedRun.event(site: 2, op: 0, base: 2))
        for (ms, word) in [(50, Verdict.Word.invalid), (19_000, Verdict.Word.valid)] {
            var run = run([site(op: 5), object(5), open, after])
            run.histories["late"] =
                run.begin("late") + [
                    run.connect().replacing(RecordedRun.epoch, with: Self.next), run.siteLine(2),
                    #"{"e":"sent","ms":40,"stream":"s","site":2,"ops":[0,0]}"#,
                    #"{"e":"ack","ms":\#(ms),"stream":"s","epoch":"\#(Self.next)","acks":[[2,0,3]]}"#,
                    #"{"e":"end","ms":20000,"unacked":0}"#,
                ]
            let verdict = try await verdict(run)
            #expect(verdict.word == word, "\(verdict.text)")
            #expect(verdict.violations.allSatisfy { $0.invariant == .stuck }, "\(verdict.text)")
        }
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

    @Test func anEpochWithoutTheOneBeforeProvesNothing() async throws {
        // The first one ends and names a second, of which there is nothing; clients go on in a third.
        var run = run([site(op: 5), object(5), open])
        run.log[0][6] = ("~reel", #"{"end":"00000000000000ab","type":"barrier"}"#)
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
        #expect(verdict.reasons.contains { $0.contains("names it as the next one") }, "\(verdict.text)")
    }

    @Test func anEpochThatHoldsAnUnknownBarrierMayHaveAnEnd() async throws {
        var run = run([site(op: 5), object(5), open], ends: false)
        run.log[0] += [
            ("~reel", #"{"more":1,"type":"barrier"}"#), ("~reel", #"{"end":"\#(Self.next)","type":"barrier"}"#),
        ]
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }

    @Test func anEpochThatWasLeftAndTrimmedProvesNothing() async throws {
        var run = RecordedRun()
        run.log[0] = [nil] + run.log[0]
        (run.histories, run.files) = ([:], [:])
        run.histories["driver"] = run.begin("driver", kind: "driver") + [run.connect()]
        var dump = RecordedRun()
        dump.log = [[open]]
        run.files["log-\(Self.next).jsonl"] = dump.dump()
        run.histories["driver"]! += [run.connect().replacing(RecordedRun.epoch, with: Self.next)]
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
        #expect(verdict.reasons.contains { $0.contains("names it as the next one") }, "\(verdict.text)")
    }

    // MARK: A log that is lost

    /// The small run, whose log is lost, and what was printed then; nil: nothing was.
    private func lost(_ records: [(key: String, value: String)], _ printed: String?) -> RecordedRun {
        var run = run(records, ends: false)
        run.files["0.epoch.txt"] = printed.map {
            "old epoch \(RecordedRun.epoch): 1 partitions\nnew epoch \(Self.next): 1 partitions, log number 1\n\($0)\ntook 7 ms\n"
        }
        return run
    }

    @Test func whatWasPrintedAsLostMayBeLost() async throws {
        for (seeds, printed, acks) in [
            (
                [site(op: 3), object(3)],
                "partition 0 begins with the state of seq 3; lost: seqs 4 to 4, and what followed; it is gone", 2
            ),
            ([], "partition 0 begins empty; lost: what followed, if anything did; it is gone", 6),
            (
                [site(op: 5), object(5)],
                "partition 0 begins with the state of seq 5; lost: what followed, if anything did; it is gone", 0
            ),
            ([site(op: 5), object(5)], "", 0),
        ] {
            let verdict = try await verdict(lost(seeds + [open], printed))
            #expect(verdict.word == .valid, "\(printed): \(verdict.text)")
            #expect(verdict.printedAsLost == acks, "\(verdict.text)")
        }
    }

    @Test func whatIsLostBesidesIsFound() async throws {
        for (seeds, printed) in [
            (
                [site(op: 3), object(3)],
                "partition 0 begins with the state of seq 4; lost: what followed, if anything did; it is gone"
            ),
            (
                [site(op: 3), object(2)],
                "partition 0 begins with the state of seq 3; lost: what followed, if anything did; it is gone"
            ),
            ([], "partition 0 begins with the state of seq 0; lost: what followed, if anything did; it is gone"),
            ([site(op: 4), object(4)], ""),
            ([site(op: 5), object(5)], nil),
            ([], nil),
        ] as [([(key: String, value: String)], String?)] {
            let verdict = try await verdict(lost(seeds + [open], printed))
            #expect(verdict.word == .invalid, "\(printed ?? "nothing"): \(verdict.text)")
            #expect(verdict.violations.map(\.invariant) == [.inheritance], "\(verdict.text)")
        }
    }

    @Test(arguments: [
        "partition 0 begins with the state of seq 9; lost: what followed, if anything did; it is gone",
        "partition 0 begins with the state of seq 51 lost: what followed",
        "partition 0 begins with the state of seq 5; kept: all",
        "partition 0 begins somehow", "partition 0", "old epoch 7",
    ]) func whatCannotBeReadOrHeldAgainstTheDumpProvesNothing(printed: String) async throws {
        let verdict = try await verdict(lost([site(op: 5), object(5), open], printed))
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    private let some = "partition 0 begins with the state of seq 3; lost: what followed, if anything did; it is gone"

    @Test func aPrintThatIsCutProvesNothing() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        let text = try #require(run.files["0.epoch.txt"])
        run.files["0.epoch.txt"] = String(text.prefix { $0 != ";" })
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    @Test func twoPrintsOfOneEpochMustSayTheSame() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        run.files["1.epoch.txt"] = run.files["0.epoch.txt"]
        #expect(try await verdict(run).word == .valid)
        run.files["1.epoch.txt"] = run.files["0.epoch.txt"]?.replacing("of seq 3", with: "of seq 2")
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    @Test func anEndAndAPrintThatNameTwoEpochsProveNothing() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        run.log[0].append(("~reel", #"{"end":"00000000000000ab","type":"barrier"}"#))
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }
}
