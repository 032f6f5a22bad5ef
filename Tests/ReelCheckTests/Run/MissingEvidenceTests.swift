import Testing

@testable import ReelCheck

/// Tests that the verdict is unknown if evidence is missing. A line of the verdict names the place and the remedy.
@Suite struct MissingEvidenceTests {
    /// Returns the small run with changed lines of a history.
    private func run(_ history: String, _ change: ([String]) -> [String]) throws -> RecordedRun {
        var run = RecordedRun()
        let lines = try #require(run.histories[history])
        run.histories[history] = change(lines)
        #expect(run.histories[history] != lines)
        return run
    }

    private func expectUnknown(
        _ run: RecordedRun,
        _ place: String,
        _ word: String,
        logName: String = "log.jsonl",
        kcat: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let verdict = try await run.verdict(logName: logName, kcat: kcat)
        #expect(verdict.word == .unknown, "\(verdict.text)", sourceLocation: sourceLocation)
        let reason = verdict.reasons.first { $0.contains(place) && $0.contains(word) } ?? ""
        #expect(reason.contains("; "), "no word of what to do\n\(verdict.text)", sourceLocation: sourceLocation)
        #expect(!reason.contains("\n"), sourceLocation: sourceLocation)
        #expect(Set(verdict.reasons).count == verdict.reasons.count, "\(verdict.text)", sourceLocation: sourceLocation)
    }

    // MARK: Invalid lines

    @Test("a line of an unknown kind is not passed over") func aLineOfAn() async throws {
        let hello = try run("reader") { Array($0.prefix(3)) + [#"{"e":"hello","ms":1}"#] + Array($0.dropFirst(3)) }
        try await expectUnknown(hello, "reader.history.jsonl:4: ", "`hello` is no kind of line")
        let renamed = try run("publisher") { lines in
            lines.map { $0.replacing(#"{"e":"ack""#, with: #"{"e":"ackx""#) }
        }
        try await expectUnknown(renamed, "publisher.history.jsonl:10: ", "`ackx` is no kind of line")
    }

    @Test("a history is unreadable if its begin line is incomplete or invalid") func requiresValidBegin() async throws {
        for (old, new, word) in [
            (#""history":1"#, #""history":2"#, "history 2 is a format that is not known"),
            (#""kind":"client""#, #""kind":"martian""#, "`martian` is no kind of party"),
            (#""history":1,"#, "", "begin without history"), (#""kind":"client","#, "", "begin without kind"),
            (#""wall":1000001,"#, "", "begin without wall"), (#","who":"reader""#, "", "begin without who"),
        ] {
            let run = try run("reader") { lines in lines.map { $0.replacing(old, with: new) } }
            try await expectUnknown(run, "reader.history.jsonl:1: ", word)
        }
    }

    @Test("a line without a clock makes a history unreadable") func aLineWithoutA() async throws {
        let run = try run("reader") { Array($0.dropLast()) + [#"{"e":"end","unacked":0}"#] }
        try await expectUnknown(run, "reader.history.jsonl:9: ", "end without ms")
    }

    @Test("nothing follows the end") func nothingFollowsTheEnd() async throws {
        let run = try run("reader") { $0 + [$0[5]] }
        try await expectUnknown(run, "reader.history.jsonl:10: ", "follows the line of end")
    }

    @Test("the checker reports a damaged seq in a dump and does not fill the gap") func reportsDamagedSeq() async throws
    {
        var run = RecordedRun()
        run.files["log.jsonl"] = run.dump() + #"{"partition":0,"seq":900000000000000000,"key":"s","value":"x"}"# + "\n"
        try await expectUnknown(run, "log.jsonl:", "seq 900000000000000000 follows seq 5", logName: "")
    }

    @Test("a text of broken escapes is read without harm") func aTextOfBroken() async throws {
        var run = RecordedRun()
        let text = String(repeating: #"\u"#, count: 100_000)
        run.files["log.jsonl"] = run.dump() + #"{"partition":0,"seq":6,"key":"\#(text)","value":"\#(text)"}"# + "\n"
        let verdict = try await run.verdict(logName: "")
        #expect(verdict.word != .invalid, "\(verdict.text)")
    }

    // MARK: Missing lines

    @Test("acks that are gone are missed") func acksThatAreGone() async throws {
        let all = try run("publisher") { $0.filter { !$0.hasPrefix(#"{"e":"ack""#) } }
        try await expectUnknown(all, "publisher.history.jsonl:10: ", "6 that were sent have no ack")
        let one = try run("publisher") { $0.filter { !$0.contains("[[1,2,2]]") } }
        try await expectUnknown(one, "publisher.history.jsonl:15: ", "1 that were sent have no ack")
    }

    @Test("a refused event and an event of an abandoned site need no ack") func expectsNoAck() async throws {
        var run = RecordedRun()
        let sent = #"{"e":"sent","ms":19000,"stream":"s","site":1,"ops":[6,6]}"#
        let nack = #"{"e":"nack","ms":19000,"stream":"s","site":1,"op":6,"code":"too_large"}"#
        let left = #"{"e":"left","ms":19000,"stream":"s","site":1}"#
        let lines = try #require(run.histories["publisher"])
        let cases: [(line: String, word: Verdict.Word)] = [(nack, .valid), (left, .valid), (sent, .unknown)]
        for (line, word) in cases {
            run.histories["publisher"] = Array(lines.dropLast()) + [sent, line] + Array(lines.suffix(1))
            let verdict = try await run.verdict()
            #expect(verdict.word == word, "\(line)\n\(verdict.text)")
        }
    }

    @Test("lines of sent that are gone are missed") func linesOfSentThat() async throws {
        let sent = try run("publisher") { $0.filter { !$0.contains(#""ops":[2,2]"#) } }
        try await expectUnknown(sent, "publisher.history.jsonl:11", "an ack of what no line of sent hands over")
        let all = try run("publisher") { $0.filter { !$0.hasPrefix(#"{"e":"sent""#) } }
        try await expectUnknown(all, "publisher.history.jsonl:4", "an ack of what no line of sent hands over")
        let both = try run("publisher") { $0.filter { !$0.contains(#""ops":[2,2]"#) && !$0.contains("[[1,2,2]]") } }
        try await expectUnknown(both, "log.jsonl:3", "whose lines of sent leave it out")
    }

    private func counted(_ lines: [String]) -> [String] {
        Array(lines.dropLast()) + [#"{"e":"end","ms":20000,"lines":\#(lines.count - 1),"unacked":0}"#]
    }

    @Test("the checker compares the line count in the end line with the history") func comparesLineCount() async throws
    {
        let whole = try run("reader") { counted($0) }
        #expect(try await whole.verdict().word == .valid)
        let less = try run("reader") { lines in counted(lines).filter { !$0.hasPrefix(#"{"e":"upto""#) } }
        try await expectUnknown(less, "reader.history.jsonl:8: ", "8 lines stand before it, and there are 7")
    }

    @Test("a reader that reports no reached position proves nothing") func requiresReachedPosition() async throws {
        let reached = try run("reader") { $0.filter { !$0.hasPrefix(#"{"e":"reached""#) } }
        try await expectUnknown(reached, "reader.history.jsonl:3: ", "no line of reached")
        let all = try run("reader") {
            $0.filter { !$0.hasPrefix(#"{"e":"reached""#) && !$0.hasPrefix(#"{"e":"events""#) }
        }
        try await expectUnknown(all, "reader.history.jsonl:3: ", "no line of reached")
        try await expectUnknown(all, "readers have subscribed", "no history has one that arrived")
        // A reader that has unsubscribed need not report its position, but then nothing proves that events arrived.
        let unsubscribed = #"{"e":"unsubscribed","ms":50,"stream":"s"}"#
        let ended = try run("reader") { Array($0.prefix(3)) + [unsubscribed] + Array($0.suffix(1)) }
        try await expectUnknown(ended, "readers have subscribed", "no history has one that arrived")
        let verdict = try await ended.verdict()
        #expect(!verdict.reasons.contains { $0.contains("no line of reached") }, "\(verdict.text)")
        let line = verdict.text.split(separator: "\n").first { $0.contains("frames carry all that they prove") }
        #expect(line?.hasSuffix("  nothing was there to look at") == true, "\(verdict.text)")
    }

    @Test("a party that listens must end whatever it calls itself") func aPartyThatListens() async throws {
        let run = try run("reader") { lines in
            lines.dropLast().map { $0.replacing(#""kind":"client""#, with: #""kind":"driver""#) }
        }
        try await expectUnknown(run, "reader.history.jsonl", "no line of end")
    }

    // MARK: The log

    @Test("seqs that a dump leaves out are missing") func seqsThatADump() async throws {
        var run = RecordedRun()
        // These are records of another stream, which no history mentions.
        for op in 0..<3 { run.log[0].append(("t", RecordedRun.event(site: 2, op: op))) }
        #expect(try await run.verdict().word == .valid)
        let lines = run.dump().split(separator: "\n")
        run.files["log.jsonl"] = (lines.prefix(6) + lines.suffix(1)).joined(separator: "\n") + "\n"
        try await expectUnknown(run, "log.jsonl:7: ", "leaves out 2 seqs of partition 0, the first is 6", logName: "")
        // A dump that contains the seqs, or lists them as empty, removes the doubt.
        run.files["log-earlier.jsonl"] = lines.prefix(8).joined(separator: "\n") + "\n"
        #expect(try await run.verdict(logName: "").word == .valid)
        run.files["log-earlier.jsonl"] = nil
        run.log[0][6] = nil
        run.log[0][7] = nil
        #expect(try await run.verdict().word == .valid)
        // kcat does not list empty seqs.
        run.files["log.jsonl"] = nil
        let verdict = try await run.verdict(kcat: true)
        #expect(verdict.word == .valid, "\(verdict.text)")
        #expect(verdict.notes.contains { $0.contains("2 seqs empty") }, "\(verdict.text)")
    }

    @Test("a dump that calls a record empty contradicts the one that has it") func aDumpThatCalls() async throws {
        var run = RecordedRun()
        run.files["log-earlier.jsonl"] = run.dump()
        run.log[0][3] = nil
        let verdict = try await run.verdict()
        #expect(verdict.word == .invalid, "\(verdict.text)")
        #expect(verdict.violations.contains { $0.invariant == .oneOrder }, "\(verdict.text)")
    }

    @Test("the checker rejects a dump line without a value") func rejectsLineWithoutValue() async throws {
        var run = RecordedRun()
        run.files["log.jsonl"] = run.dump() + #"{"partition":0,"seq":6,"key":"s"}"# + "\n"
        try await expectUnknown(run, "log.jsonl:7: ", "it has no value", logName: "")
    }

    @Test("a state of an epoch without a dump is not passed over") func aStateOfAn() async throws {
        let name = "log-\(RecordedRun.epoch).jsonl"
        let state = try run("driver") { lines in
            lines.map { $0.replacing(RecordedRun.epoch, with: "00000000000000ee") }
        }
        try await expectUnknown(state, "driver.history.jsonl:2", "no dump of the log of epoch", logName: name)
        var run = RecordedRun()
        let snapshot = try #require(run.files["s.snapshot.jsonl"])
        run.files["s.snapshot.jsonl"] = snapshot.replacing(RecordedRun.epoch, with: "00000000000000ee")
        try await expectUnknown(run, "s.snapshot.jsonl:1", "no dump of the log of epoch", logName: name)
    }

    @Test("the checker also verifies snapshots and states of an empty stream") func verifiesEmptyStream() async throws {
        var run = RecordedRun()
        run.files["empty.snapshot.jsonl"] = run.snapshot("s", seq: -1)
        let verdict = try await run.verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
        #expect(verdict.counts.contains { $0.invariant == .snapshot && $0.facts == 2 }, "\(verdict.text)")
        let state = run.state("s", seq: -1)
        run.histories["driver"]?.append(state.replacing(#""digest":""#, with: #""digest":"0"#))
        try await expectUnknown(run, "driver.history.jsonl:3: ", "not 16 lower-case hex digits")
        let digest = run.fold("s", seq: -1).digest(of: "s")
        run.histories["driver"]?[2] = state.replacing(digest, with: "0123456789abcdef")
        #expect(try await run.verdict().word == .invalid)
    }

    @Test("the checker reports a head of a partition that does not exist") func reportsUnknownPartition() async throws {
        let line = #"{"e":"head","ms":60,"epoch":"\#(RecordedRun.epoch)","partition":7,"first":0,"head":5,"of":"a"}"#
        let head = try run("driver") { $0 + [line] }
        try await expectUnknown(head, "driver.history.jsonl:3", "a partition that the epoch")
    }

    @Test("a place is looked for only where it is the first") func aPlaceIsLooked() {
        var findings = Findings()
        var looked = 0
        func place() -> String? {
            looked += 1
            return "a:\(looked)"
        }
        for _ in 0..<3 { findings.unjudged("why", at: place()) }
        #expect(looked == 1)
        #expect(findings.unjudged["why"]?.count == 3 && findings.unjudged["why"]?.place == "a:1")
    }

    // MARK: Ranges

    @Test("a coverage contains exactly the numbers of its inserted ranges") func coverageContainsItsRanges() {
        var ops = Coverage()
        #expect(!ops.contains(0))
        var held: Set<Int64> = []
        for begin in stride(from: Int64(0), to: 60, by: 6) {
            ops.insert(begin...begin + begin % 4)
            held.formUnion(begin...begin + begin % 4)
            for number in (-1)...70 as ClosedRange<Int64> {
                #expect(ops.contains(number) == held.contains(number), "\(number) of \(held.sorted())")
            }
        }
    }

    @Test("a coverage counts its numbers outside another coverage") func countsOutside() {
        var ops = Coverage()
        for range in [0...9, 20...29, 10...10] as [ClosedRange<Int64>] { ops.insert(range) }
        var others = Coverage()
        #expect(ops.count(outside: others) == 21)
        for range in [(-5)...(-1), 2...3, 10...24, 40...50] as [ClosedRange<Int64>] { others.insert(range) }
        #expect(ops.count(outside: others) == 8 + 5)
        #expect(others.count(outside: ops) == 5 + 9 + 11)
        #expect(ops.contains(10) && !ops.contains(11) && ops.contains(29) && !ops.contains(-1) && ops.last == 29)
    }
}
