import Testing

@testable import ReelCheck

/// Tests that the checker finds losses between the end of an epoch and the start of the next one, if it has both dumps.
@Suite struct EpochTransitionCheckTests {
    private static let next = "00000000000000bb"

    /// Returns the small run with a dump of the next epoch that contains the records. The first epoch ends if `ends` is
    /// true.
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

    @Test("an epoch that begins as the one before ended is valid whatever follows") func anEpochThatBegins()
        async throws
    {
        let after = (key: "s", value: RecordedRun.event(site: 2, op: 0, base: 2))
        let verdict = try await verdict(run([site(op: 5), object(5), open, after]))
        #expect(verdict.word == .valid, "\(verdict.text)")
        #expect(verdict.counts.contains { $0.invariant == .inheritance && $0.facts == 1 })
    }

    @Test("a client that never moves to the next epoch is stuck") func reportsStuckClient() async throws {
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

    @Test("the checker finds state that the next epoch lost or changed") func findsLostState() async throws {
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

    @Test("the next epoch must state that sites of a stream were retired")
    func retirementIsInherited() async throws {
        let (retire, retired) = (RecordedRun.retire(before: 1), (key: "s", value: RecordedRun.retiredSeed))
        for (isRetired, seeds, word) in [
            (true, [retired, site(op: 5), object(5)], Verdict.Word.valid), (true, [site(op: 5), object(5)], .invalid),
            (false, [retired, site(op: 5), object(5)], .invalid), (false, [site(op: 5), object(5)], .valid),
        ] {
            var run = run(seeds + [open])
            if isRetired { run.log[0].insert(("~reel", retire), at: run.log[0].count - 1) }
            let verdict = try await verdict(run)
            #expect(verdict.word == word, "\(verdict.text)")
            guard word == .invalid else { continue }
            #expect(verdict.violations.map(\.invariant) == [.inheritance])
            #expect(verdict.violations.first?.sentence.contains("retirement of sites") == true, "\(verdict.text)")
        }
    }

    @Test("a dump that ends inside the seeds proves nothing") func aDumpThatEnds() async throws {
        let verdict = try await verdict(run([site(op: 5)]))
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }

    @Test("an epoch without the one before proves nothing") func anEpochWithoutThe() async throws {
        // The first epoch names a second one, which has no dump. The clients continue in a third epoch.
        var run = run([site(op: 5), object(5), open])
        run.log[0][6] = ("~reel", #"{"end":"00000000000000ab","type":"barrier"}"#)
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
        #expect(verdict.reasons.contains { $0.contains("names it as the next one") }, "\(verdict.text)")
    }

    @Test("an epoch that holds an unknown barrier may have an end") func anEpochThatHolds() async throws {
        var run = run([site(op: 5), object(5), open], ends: false)
        run.log[0] += [
            ("~reel", #"{"more":1,"type":"barrier"}"#), ("~reel", #"{"end":"\#(Self.next)","type":"barrier"}"#),
        ]
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }

    @Test("an epoch that was left and trimmed proves nothing") func anEpochThatWas() async throws {
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

    // MARK: Clients that move to the next epoch

    private func reached(_ seq: Int, in epoch: String, ms: Int) -> String {
        #"{"e":"reached","ms":\#(ms),"stream":"s","epoch":"\#(epoch)","seq":\#(seq)}"#
    }

    private func connect(_ run: RecordedRun) -> String { run.connect().replacing(RecordedRun.epoch, with: Self.next) }

    /// Returns the lines of the small run's reader up to seq 2, and its move to the next epoch with the state of seq 2.
    private func goesOver(_ run: RecordedRun) -> [String] {
        let loaded = #"{"e":"loaded","ms":50,"stream":"s","epoch":"\#(Self.next)","seq":2}"#
        return run.histories["reader"]!.prefix(6) + [
            reached(2, in: RecordedRun.epoch, ms: 42), #"{"e":"disconnect","ms":43,"code":1000,"why":"goaway"}"#,
            connect(run), loaded,
        ]
    }

    private let end = #"{"e":"end","ms":20000,"unacked":0}"#

    @Test("a reader is held against the epoch in which it ended") func aReaderIsHeld() async throws {
        var run = run([site(op: 5), object(5), open])
        let lines = goesOver(run)
        run.histories["reader"] = lines + [reached(2, in: Self.next, ms: 20_000), end]
        let valid = try await verdict(run)
        #expect(valid.word == .valid, "\(valid.text)")
        // The reader reports a position in the next epoch, but its last report is in the first epoch.
        run.histories["reader"] =
            lines + [reached(2, in: Self.next, ms: 60), reached(2, in: RecordedRun.epoch, ms: 20_000), end]
        let invalid = try await verdict(run)
        #expect(invalid.violations.map(\.invariant) == [.stuck], "\(invalid.text)")
    }

    @Test("the checker uses a reader's latest position if an earlier one has no epoch") func usesLatestPosition()
        async throws
    {
        var run = run([site(op: 5), object(5), open])
        let never = #"{"e":"reached","ms":2,"stream":"s","seq":-1}"#
        run.histories["reader"] =
            run.begin("reader") + [never] + goesOver(run).dropFirst() + [
                reached(2, in: Self.next, ms: 20_000), end,
            ]
        let verdict = try await verdict(run)
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("heads of two epochs are not compared") func headsOfTwoEpochs() async throws {
        var run = run([site(op: 5), object(5), open])
        func subscribed(_ epoch: String, head: Int) -> String {
            run.subscribed("s", partition: 0, head: head, after: head).replacing(RecordedRun.epoch, with: epoch)
        }
        let over = [subscribed(RecordedRun.epoch, head: 5), subscribed(Self.next, head: 2)]
        for (lines, invariants) in [(over, []), (over + [subscribed(Self.next, head: 1)], [Invariant.heads])] {
            let reached = reached(2, in: Self.next, ms: 60)
            run.histories["late"] = run.begin("late") + [run.connect()] + lines + [reached, end]
            let verdict = try await verdict(run)
            #expect(verdict.violations.map(\.invariant) == invariants, "\(verdict.text)")
            #expect(verdict.word == (invariants.isEmpty ? .valid : .invalid), "\(verdict.text)")
        }
    }

    // MARK: Ops that are resent in the next epoch

    /// Returns a run in which op 5 overtook op 4 and was acked before the epoch ended. In the next epoch, the events
    /// follow the seeds, and each of them is acked.
    private func overtaken(_ events: [(op: Int, seq: Int)], ends: Bool = true) -> RecordedRun {
        let again = events.map { (key: "s", value: RecordedRun.event(site: 1, op: $0.op, base: 2)) }
        var run = run([site(op: 3), object(3), open] + again, ends: ends)
        run.log[0][4] = ("s", RecordedRun.event(site: 1, op: 5))
        run.log[0].remove(at: 5)
        let lines = run.histories["publisher"]!.filter { !$0.contains("[[1,4,4]]") && !$0.contains(#""e":"end""#) }
            .map { $0.replacing("[[1,5,5]]", with: "[[1,5,4]]") }
        let acks = events.map {
            #"{"e":"ack","ms":60,"stream":"s","epoch":"\#(Self.next)","acks":[[1,\#($0.op),\#($0.seq)]]}"#
        }
        run.histories["publisher"] =
            lines + [connect(run), #"{"e":"sent","ms":50,"stream":"s","site":1,"ops":[4,5]}"#] + acks + [end]
        (run.histories["reader"], run.files["s.snapshot.jsonl"]) = (nil, nil)
        run.histories["driver"]?.removeAll { $0.contains(#""e":"state""#) }
        return run
    }

    @Test("the checker accepts an acked event that only the next epoch consumes") func acceptsLaterConsumption()
        async throws
    {
        let verdict = try await verdict(overtaken([(4, 3), (5, 4)]))
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("the checker finds an acked event that no epoch consumes") func findsUnconsumedEvent() async throws {
        var run = overtaken([(5, 3)])
        run.histories["publisher"]!.insert(#"{"e":"nack","ms":70,"stream":"s","site":1,"op":4,"code":"range"}"#, at: 14)
        let verdict = try await verdict(run)
        #expect(Set(verdict.violations.map(\.invariant)) == [.siteOrder], "\(verdict.text)")
    }

    @Test("a site that was left may have a gap") func aSiteThatWas() async throws {
        var run = overtaken([])
        run.histories["publisher"]!.removeAll { $0.contains(#""ops":[4,5]"#) }
        let without = try await verdict(run)
        #expect(without.violations.map(\.invariant) == [.siteOrder], "\(without.text)")
        run.histories["publisher"]!.insert(#"{"e":"left","ms":70,"stream":"s","site":1}"#, at: 14)
        let left = try await verdict(run)
        #expect(left.word == .valid, "\(left.text)")
    }

    @Test("without the next epochs dump it is not known what is consumed") func withoutTheNextEpochs() async throws {
        var run = overtaken([(4, 3), (5, 4)])
        run.files["log-\(Self.next).jsonl"] = nil
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
        #expect(verdict.reasons.contains { $0.contains("whether an acked event is consumed") }, "\(verdict.text)")
    }

    @Test("the checker accepts a gap that the epoch report lists as lost") func acceptsReportedGap() async throws {
        var run = overtaken([], ends: false)
        run.histories["publisher"]!.removeAll { $0.contains(#""ops":[4,5]"#) }
        run.histories["publisher"]!.insert(#"{"e":"nack","ms":70,"stream":"s","site":1,"op":4,"code":"range"}"#, at: 14)
        run.files["0.epoch.txt"] = printed(some)
        let verdict = try await verdict(run)
        #expect(verdict.word == .valid && verdict.printedAsLost == 1, "\(verdict.text)")
    }

    // MARK: A lost log

    /// Returns the small run with a lost log. `printed` is the loss in the epoch report; nil means that there is no
    /// report.
    private func lost(_ records: [(key: String, value: String)], _ printed: String?) -> RecordedRun {
        var run = run(records, ends: false)
        run.files["0.epoch.txt"] = printed.map(self.printed)
        return run
    }

    private func printed(_ loss: String) -> String {
        "old epoch \(RecordedRun.epoch): 1 partitions\nnew epoch \(Self.next): 1 partitions, log number 1\n\(loss)\n"
            + "took 7 ms\n"
    }

    @Test("the checker accepts the loss of events that the epoch report lists as lost") func acceptsReportedLoss()
        async throws
    {
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

    @Test("the checker finds a loss that the epoch report does not list") func findsUnreportedLoss() async throws {
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

    @Test(
        "an epoch report that is unreadable or contradicts the dump proves nothing",
        arguments: [
            "partition 0 begins with the state of seq 9; lost: what followed, if anything did; it is gone",
            "partition 0 begins with the state of seq 51 lost: what followed",
            "partition 0 begins with the state of seq 5; kept: all",
            "partition 0 begins somehow", "partition 0", "old epoch 7",
        ]
    ) func ignoresInvalidReport(printed: String) async throws {
        let verdict = try await verdict(lost([site(op: 5), object(5), open], printed))
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    private let some = "partition 0 begins with the state of seq 3; lost: what followed, if anything did; it is gone"

    @Test("a print that is cut proves nothing") func aPrintThatIs() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        let text = try #require(run.files["0.epoch.txt"])
        run.files["0.epoch.txt"] = String(text.prefix { $0 != ";" })
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    @Test("two reports of the same epoch must agree") func comparesTwoReports() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        run.files["1.epoch.txt"] = run.files["0.epoch.txt"]
        #expect(try await verdict(run).word == .valid)
        run.files["1.epoch.txt"] = run.files["0.epoch.txt"]?.replacing("of seq 3", with: "of seq 2")
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown && verdict.reasons.count == 1, "\(verdict.text)")
    }

    @Test("an end and a print that name two epochs prove nothing") func anEndAndA() async throws {
        var run = lost([site(op: 3), object(3), open], some)
        run.log[0].append(("~reel", #"{"end":"00000000000000ab","type":"barrier"}"#))
        let verdict = try await verdict(run)
        #expect(verdict.word == .unknown, "\(verdict.text)")
    }

    // MARK: A log without its last records

    /// Returns the small run with a log that lost all records after seq 3 before it was dumped.
    private func cutAt3(_ seeds: [(key: String, value: String)], _ printed: String) -> RecordedRun {
        var run = lost(seeds + [open], printed)
        run.log[0].removeLast(2)
        return run
    }

    @Test("the log need not contain events that the epoch report lists as lost") func allowsReportedLoss() async throws
    {
        let verdict = try await verdict(cutAt3([site(op: 3), object(3)], some))
        #expect(verdict.word == .valid && verdict.printedAsLost == 2, "\(verdict.text)")
        var run = cutAt3([site(op: 3), object(3)], some)
        run.files["log-before.jsonl"] = RecordedRun().dump()
            .replacing("}\n", with: #","epoch":"\#(RecordedRun.epoch)"}"# + "\n")
        let before = try await self.verdict(run)
        #expect(before.word == .valid && before.printedAsLost == 2, "\(before.text)")
        run.files["log-\(RecordedRun.epoch).jsonl"] = ""
        let nothing = try await run.verdict(logName: "")
        #expect(nothing.word == .valid && nothing.printedAsLost == 2, "\(nothing.text)")
    }

    @Test("a reader that has read all remaining records is not stuck") func acceptsReaderAtEnd() async throws {
        var run = cutAt3([site(op: 3), object(3)], some)
        let lines = run.histories["reader"]!.map { $0.replacing(#""seq":5}"#, with: #""seq":3}"#) }
        run.histories["reader"] = lines.prefix(6) + [run.frame("s", partition: 0, from: 3, to: 3)] + lines.dropFirst(7)
        let verdict = try await verdict(run)
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("other records may replace records that the epoch report lists as lost") func allowsReplacedRecords()
        async throws
    {
        var run = cutAt3([site(op: 3), object(3)], some)
        run.log[0].append(("s", RecordedRun.event(site: 2, op: 0)))
        (run.histories["reader"], run.histories["driver"]) = (nil, run.begin("driver", kind: "driver") + [connect(run)])
        run.files["s.snapshot.jsonl"] = nil
        let verdict = try await verdict(run)
        #expect(verdict.word == .valid && verdict.printedAsLost == 2, "\(verdict.text)")
    }

    @Test("the checker cannot verify state that only the seeds of the next epoch hold") func seedStateIsUnknown()
        async throws
    {
        let printed = "partition 0 begins with the state of seq 4; lost: what followed, if anything did; it is gone"
        let verdict = try await verdict(cutAt3([site(op: 4), object(4)], printed))
        #expect(verdict.word == .unknown && verdict.printedAsLost == 1, "\(verdict.text)")
    }

    @Test("without a print it is lost") func withoutAPrintIt() async throws {
        var run = cutAt3([site(op: 3), object(3)], some)
        run.files["0.epoch.txt"] = nil
        run.log[0].append(("~reel", #"{"end":"\#(Self.next)","type":"barrier"}"#))
        let verdict = try await verdict(run)
        #expect(verdict.violations.contains { $0.invariant == .ackedLoss }, "\(verdict.text)")
    }
}
