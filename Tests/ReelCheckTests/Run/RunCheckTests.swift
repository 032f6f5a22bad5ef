import Testing

@testable import ReelCheck

/// Tests that the checker finds each kind of violation, and reports none in a similar valid run.
@Suite struct RunCheckTests {
    /// Returns the small run with one text replaced in a history. The text must be there.
    private func run(
        _ history: String,
        _ old: String,
        _ new: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> RecordedRun {
        var run = RecordedRun()
        let lines = run.histories[history]!
        run.histories[history] = lines.map { $0.replacing(old, with: new) }
        #expect(run.histories[history] != lines, sourceLocation: sourceLocation)
        return run
    }

    private func expectInvalid(
        _ run: RecordedRun,
        _ invariants: Invariant...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let verdict = try await run.verdict()
        #expect(verdict.word == .invalid, "\(verdict.text)", sourceLocation: sourceLocation)
        let found = Set(verdict.violations.map(\.invariant))
        #expect(found == Set(invariants), "\(verdict.text)", sourceLocation: sourceLocation)
        #expect(verdict.violations.allSatisfy { !$0.lines.isEmpty }, sourceLocation: sourceLocation)
    }

    private func expectUnknown(
        _ run: RecordedRun,
        _ word: String,
        logName: String = "log.jsonl",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let verdict = try await run.verdict(logName: logName)
        #expect(verdict.word == .unknown, "\(verdict.text)", sourceLocation: sourceLocation)
        #expect(verdict.reasons.contains { $0.contains(word) }, "\(verdict.text)", sourceLocation: sourceLocation)
    }

    @Test("a run in which all is well is valid") func aRunInWhich() async throws {
        let verdict = try await RecordedRun().verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
        #expect(verdict.counts.allSatisfy { $0.facts > 0 || $0.invariant == .inheritance }, "\(verdict.text)")
    }

    @Test("only records that are in the dump are counted") func onlyRecordsThatAre() async throws {
        var run = RecordedRun()
        #expect(try await run.verdict().notes[0].hasSuffix("; 6 records of the log, epoch \(RecordedRun.epoch)"))
        run.log[0][3] = nil
        #expect(try await run.verdict().notes[0].contains("; 5 records of the log, "))
        #expect(try await run.verdict(logName: "").notes[0].hasSuffix("; no record of a log"))
    }

    @Test("a dump of kcat is as good") func aDumpOfKcat() async throws {
        let verdict = try await RecordedRun().verdict(kcat: true)
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    // MARK: Lost events

    @Test("an acked event beyond the end of the log is lost") func anAckedEventBeyond() async throws {
        var run = RecordedRun()
        run.log[0].removeLast()
        run.histories["reader"] = nil
        run.histories["driver"] = nil
        run.files = [:]
        try await expectInvalid(run, .ackedLoss)
    }

    @Test("an acked event that is a hole is lost") func anAckedEventThat() async throws {
        var run = RecordedRun()
        run.log[0][5] = nil
        run.log[0].append(("s", RecordedRun.event(site: 2, op: 0)))
        run.histories["reader"] = nil
        run.histories["driver"] = nil
        run.files = [:]
        try await expectInvalid(run, .ackedLoss)
    }

    @Test("an ack at the seq of another event is a loss") func anAckAtThe() async throws {
        try await expectInvalid(run("publisher", "[[1,4,4]]", "[[1,4,3]]"), .ackedLoss)
    }

    @Test("an ack after the end of the epoch is a loss") func lateAckIsLoss() async throws {
        var run = RecordedRun()
        run.log[0][4] = ("~reel", #"{"end":"00000000000000bb","type":"barrier"}"#)
        run.histories["reader"] = nil
        run.histories["driver"] = nil
        run.files = [:]
        try await expectInvalid(run, .ackedLoss)
    }

    // MARK: Phantoms

    @Test("an event that a client receives and the log does not contain is a phantom") func unloggedEventIsPhantom()
        async throws
    {
        var run = RecordedRun()
        run.log[0][5] = ("t", RecordedRun.event(site: 2, op: 0))
        run.histories["publisher"]!.removeAll { $0.contains("[[1,5,5]]") }
        run.histories["driver"] = nil
        run.files = [:]
        try await expectInvalid(run, .phantom)
    }

    @Test("an op that no client sent is a phantom") func unsentOpIsPhantom() async throws {
        var run = RecordedRun()
        run.histories["publisher"]!.removeAll { $0.contains(#""ops":[5,5]"#) || $0.contains("[[1,5,5]]") }
        try await expectInvalid(run, .phantom)
    }

    @Test("an ack of an op that was not handed over is a phantom") func anAckOfAn() async throws {
        var run = run("publisher", #""ops":[5,5]"#, #""ops":[4,4]"#)
        run.histories["publisher"]!.removeLast()
        try await expectInvalid(run, .phantom)
    }

    // MARK: Duplicates

    @Test("an event that appears twice in a frame is doubled") func repeatedEventIsDoubled() async throws {
        let hash = RecordedRun.hash(RecordedRun.event(site: 1, op: 1))
        try await expectInvalid(
            run("reader", #"[1,1,1,"\#(hash)"]"#, #"[1,1,1,"\#(hash)"],[1,1,1,"\#(hash)"]"#),
            .doubled
        )
    }

    @Test("an event that is pushed again is doubled") func anEventThatIs() async throws {
        var run = RecordedRun()
        run.histories["reader"]!.insert(run.frame("s", partition: 0, from: 2, to: 2), at: 6)
        try await expectInvalid(run, .doubled)
        run = RecordedRun()
        run.histories["reader"]!.insert(run.frame("s", partition: 0, from: 2, to: 2, fetched: true), at: 6)
        #expect(try await run.verdict().word == .valid)
    }

    @Test("a state in which an event counts twice is not the fold") func aStateInWhich() async throws {
        var run = RecordedRun()
        run.files["s.snapshot.jsonl"] = run.files["s.snapshot.jsonl"]!.replacing(#""n":[5,"#, with: #""n":[6,"#)
        try await expectInvalid(run, .snapshot)
    }

    // MARK: Order

    @Test("acks of a site out of order are found") func acksOfASite() async throws {
        var run = RecordedRun()
        run.histories["publisher"]!.swapAt(11, 12)
        try await expectInvalid(run, .siteOrder)
    }

    @Test("an acked event that is never consumed is found") func anAckedEventThatIs() async throws {
        var run = RecordedRun()
        run.log[0][3] = ("s", RecordedRun.event(site: 1, op: 2))
        run.histories["publisher"]!.removeAll { $0.contains("[[1,3,3]]") }
        run.histories["reader"] = nil
        run.histories["driver"] = nil
        run.files = [:]
        try await expectInvalid(run, .siteOrder)
    }

    @Test("two parties that hold different bytes at a seq are found") func twoPartiesThatHold() async throws {
        let hash = RecordedRun.hash(RecordedRun.event(site: 1, op: 2))
        try await expectInvalid(run("reader", hash, "0123456789abcdef"), .oneOrder)
    }

    @Test("two dumps that differ are found") func twoDumpsThatDiffer() async throws {
        var run = RecordedRun()
        run.files["log-earlier.jsonl"] = run.dump().replacing("inc\\\":1", with: "inc\\\":2")
        let verdict = try await run.verdict()
        #expect(
            verdict.word == .invalid && verdict.violations.contains { $0.invariant == .oneOrder },
            "\(verdict.text)"
        )
    }

    // MARK: Gaps

    @Test("a push that leaves seqs out is a gap") func aPushThatLeaves() async throws {
        var run = RecordedRun()
        run.histories["reader"]![5] = run.frame("s", partition: 0, from: 0, to: 1)
        run.histories["reader"]!.remove(at: 7)
        try await expectInvalid(run, .gap)
    }

    @Test("an upto of what was not sent is a gap") func anUptoOfWhat() async throws {
        var run = RecordedRun()
        run.histories["reader"]![6] = #"{"e":"upto","ms":41,"partition":0,"seq":5}"#
        try await expectInvalid(run, .gap)
    }

    @Test("a seq that is shown and not proven is a gap") func aSeqThatIs() async throws {
        var run = RecordedRun()
        run.histories["reader"]!.remove(at: 6)
        try await expectInvalid(run, .gap)
        run.histories["reader"]![6] = run.histories["reader"]![6].replacing(#""seq":5"#, with: #""seq":2"#)
        run.histories["publisher"]!.removeAll { $0.contains("[[1,3,3]]") }
        try await expectInvalid(run, .stuck)
    }

    @Test("a frame that claims more than it carries is found") func aFrameThatClaims() async throws {
        let hash = RecordedRun.hash(RecordedRun.event(site: 1, op: 4))
        let run = run("reader", #",[4,1,4,"\#(hash)"]"#, "")
        try await expectInvalid(run, .coverage)
        #expect(try await run.verdict().violations.first?.sentence.contains("leaves out seq 4,") == true)
    }

    @Test("a frame that carries more than it claims is found") func aFrameThatCarries() async throws {
        try await expectInvalid(run("reader", #""from":0,"to":2"#, #""from":0,"to":1"#), .coverage, .gap)
    }

    @Test("a barrier belongs to every frame around it") func aBarrierBelongsTo() async throws {
        var run = RecordedRun()
        let barrier = #"{"fold":1,"type":"barrier"}"#
        run.log[0].append(("~reel", barrier))
        run.histories["reader"]!.insert(
            #"{"e":"events","ms":41,"stream":"s","from":6,"to":6,"events":[]}"#,
            at: 7
        )
        try await expectInvalid(run, .coverage)
        run.histories["reader"]![7] =
            #"{"e":"events","ms":41,"stream":"s","from":6,"to":6,"events":[[6,-1,-1,"\#(RecordedRun.hash(barrier))"]]}"#
        #expect(try await run.verdict().word == .valid)
    }

    // MARK: States, heads and the end

    @Test("a digest that is not the folds is found") func aDigestThatIs() async throws {
        let digest = RecordedRun().fold("s", seq: 5).digest(of: "s")
        try await expectInvalid(run("driver", digest, "0123456789abcdef"), .digest)
    }

    @Test("a delta leads from one state to the next") func aDeltaLeadsFrom() async throws {
        var run = RecordedRun()
        run.files["d.snapshot.jsonl"] = run.snapshot("s", seq: 5, after: 2)
        #expect(try await run.verdict().word == .valid)
        run.files["d.snapshot.jsonl"] = run.snapshot("s", seq: 4, after: 2).replacing(
            #""seq":4,"si"#,
            with: #""seq":5,"si"#
        )
        try await expectInvalid(run, .snapshot)
    }

    @Test("a head that goes back is found") func aHeadThatGoes() async throws {
        var run = RecordedRun()
        let line = #"{"e":"head","ms":60,"epoch":"\#(RecordedRun.epoch)","partition":0,"first":0,"head":5,"of":"a"}"#
        run.histories["driver"]! += [line, line.replacing("5,\"of", with: "4,\"of")]
        try await expectInvalid(run, .heads)
    }

    @Test("a head beyond the log is found") func aHeadBeyondThe() async throws {
        var run = RecordedRun()
        run.histories["reader"]!.insert(#"{"e":"upto","ms":42,"partition":0,"seq":6}"#, at: 7)
        try await expectInvalid(run, .heads)
    }

    @Test("an event without an ack at the end is stuck") func unackedEventIsStuck() async throws {
        try await expectInvalid(run("publisher", #""unacked":0"#, #""unacked":1"#), .stuck)
    }

    @Test("a reader that never receives anything is stuck") func silentReaderIsStuck() async throws {
        var run = RecordedRun()
        let lines = [#"{"e":"reached","ms":20000,"stream":"s","seq":-1}"#, #"{"e":"end","ms":20000,"unacked":0}"#]
        run.histories["reader"] = run.begin("reader") + lines
        try await expectInvalid(run, .stuck)
        run.histories["reader"] = run.begin("reader") + [run.connect()] + lines
        try await expectInvalid(run, .stuck)
        run.histories["reader"] = run.begin("reader") + lines.map { $0.replacing(":20000", with: ":5000") }
        #expect(try await run.verdict().word == .valid, "what was acked just before may be on its way")
    }

    @Test("nothing is stuck while something is broken") func nothingIsStuckWhile() async throws {
        var run = run("publisher", #""unacked":0"#, #""unacked":1"#)
        run.histories["driver"]!.append(#"{"e":"fault","ms":60,"what":"kill","target":"a","proof":"gone"}"#)
        #expect(try await run.verdict().word == .valid)
        run.histories["driver"]!.append(#"{"e":"heal","ms":61}"#)
        try await expectInvalid(run, .stuck)
    }

    // MARK: Not enough evidence

    @Test("without a dump nothing is known") func withoutADumpNothing() async throws {
        var run = RecordedRun()
        try await expectUnknown(run, "no dump", logName: "")
        // An event after a seq that only `upto` has proven is not a gap either.
        run.log[0].append(nil)
        run.log[0].append(("s", RecordedRun.event(site: 1, op: 6)))
        run.histories["reader"]!.insert(#"{"e":"upto","ms":42,"partition":0,"seq":6}"#, at: 7)
        run.histories["reader"]!.insert(run.frame("s", partition: 0, from: 7, to: 7), at: 8)
        let sent = #"{"e":"sent","ms":50,"stream":"s","site":1,"ops":[6,6]}"#
        let ack = #"{"e":"ack","ms":19000,"stream":"s","epoch":"\#(RecordedRun.epoch)","acks":[[1,6,7]]}"#
        run.histories["publisher"]!.insert(contentsOf: [sent, ack], at: run.histories["publisher"]!.count - 1)
        #expect(try await run.verdict().word == .valid)
        try await expectUnknown(run, "no dump", logName: "")
        run.files["log-\(RecordedRun.epoch).jsonl"] = ""
        try await expectUnknown(run, "no dump of the log of epoch", logName: "")
        run.files = ["log-00000000000000ee.jsonl": run.dump()]
        try await expectUnknown(run, "no dump of the log of epoch", logName: "")
    }

    @Test("a folder without a history is refused") func aFolderWithoutA() async throws {
        var run = RecordedRun()
        run.histories = [:]
        await #expect(throws: Fault.self) { try await run.verdict() }
    }

    @Test("without facts nothing is known") func withoutFactsNothingIs() async throws {
        var run = RecordedRun()
        run.histories["publisher"] = run.begin("publisher") + [run.connect()]
        run.histories["reader"] = nil
        run.files = [:]
        try await expectUnknown(run, "no history has an ack or an event")
    }

    @Test("a history of another epoch needs its log") func aHistoryOfAnother() async throws {
        try await expectUnknown(
            run("reader", RecordedRun.epoch, "00000000000000ee"),
            "epoch",
            logName: "log-\(RecordedRun.epoch).jsonl"
        )
    }

    @Test(
        "a foreign line makes a history unreadable",
        arguments: [
            "hello", "{}", #"{"ms":1}"#, #"{"e":"ack","ms":1}"#, #"{"e":"events","ms":1,"events":[[1]]}"#, "{", "\0",
        ]
    )
    func aForeignLineMakes(line: String) async throws {
        var run = RecordedRun()
        run.histories["reader"]!.insert(line, at: 3)
        try await expectUnknown(run, "reader.history.jsonl:4: ")
    }

    @Test("a foreign line in the dump makes it unreadable") func aForeignLineIn() async throws {
        var run = RecordedRun()
        run.files["log-more.jsonl"] = "what is this\n"
        try await expectUnknown(run, "log-more.jsonl:1: ")
        // The checker still uses the lines after the invalid one.
        run.files["log-more.jsonl"] = nil
        var lines = run.dump().split(separator: "\n")
        lines.insert("hello", at: 2)
        run.files["log.jsonl"] = lines.joined(separator: "\n") + "\n"
        try await expectUnknown(run, "log.jsonl:3: ", logName: "")
    }

    @Test("a history that is cut is evidence up to there") func aHistoryThatIs() async throws {
        var run = RecordedRun()
        let lines = run.histories["reader"]!.joined(separator: "\n")
        run.histories["reader"] = nil
        for end in [lines.utf8.count - 30, lines.utf8.count - 130, 200, 20] {
            run.files["reader.history.jsonl"] = String(lines.prefix(end))
            try await expectUnknown(run, "no line of end in reader.history.jsonl: cut")
        }
        run = RecordedRun()
        run.files["driver.history.jsonl"] = run.histories.removeValue(forKey: "driver")!.joined(separator: "\n")
        try await expectUnknown(run, "driver.history.jsonl: cut")
    }

    @Test("a dump that is cut proves no loss") func aDumpThatIs() async throws {
        var run = RecordedRun()
        run.files["log.jsonl"] = String(run.dump().dropLast(40))
        try await expectUnknown(run, "cut", logName: "")
    }

    @Test("a stream may be called as a dump is") func aStreamMayBe() async throws {
        var run = RecordedRun()
        run.files["login-0.snapshot.jsonl"] = run.files.removeValue(forKey: "s.snapshot.jsonl")
        run.histories["log-reader"] = run.histories.removeValue(forKey: "reader")
        let verdict = try await run.verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("the checker does not know records below the start of a trimmed log") func trimmedRecordsAreUnknown()
        async throws
    {
        var run = RecordedRun()
        let whole = run.dump()
        let trimmed = whole.split(separator: "\n").dropFirst(2).joined(separator: "\n") + "\n"
        run.files["log.jsonl"] = trimmed
        try await expectUnknown(run, "trimmed", logName: "")
        run.files["log-before.jsonl"] = whole
        #expect(try await run.verdict(logName: "").word == .valid)
    }
}
