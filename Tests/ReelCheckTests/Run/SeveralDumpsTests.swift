import Testing

@testable import ReelCheck

/// Tests that the last of several dumps of a log determines the end of the log.
@Suite struct SeveralDumpsTests {
    private let last = "log-\(RecordedRun.epoch).jsonl"

    /// Returns the small run, and an earlier dump with `count` more records of a stream that no history mentions.
    private func run(behind count: Int) -> (run: RecordedRun, earlier: String) {
        let run = RecordedRun()
        var before = run
        for op in 0..<count { before.log[0].append(("t", RecordedRun.event(site: 2, op: op))) }
        return (run, before.dump())
    }

    private func expectInvalid(
        _ verdict: Verdict,
        _ invariants: Set<Invariant>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(verdict.word == .invalid, "\(verdict.text)", sourceLocation: sourceLocation)
        let found = Set(verdict.violations.map(\.invariant))
        #expect(found == invariants, "\(verdict.text)", sourceLocation: sourceLocation)
        #expect(verdict.violations.allSatisfy { !$0.lines.isEmpty }, sourceLocation: sourceLocation)
    }

    private func expectUnknown(
        _ verdict: Verdict,
        _ word: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(verdict.word == .unknown, "\(verdict.text)", sourceLocation: sourceLocation)
        let reason = verdict.reasons.first { $0.contains(word) } ?? ""
        #expect(reason.contains("; "), "no word of what to do\n\(verdict.text)", sourceLocation: sourceLocation)
    }

    // MARK: The last dump

    @Test("records that only an earlier dump has are gone") func recordsThatOnlyAn() async throws {
        for name in ["log.jsonl", last] {
            var (run, earlier) = run(behind: 2)
            run.files["log-earlier.jsonl"] = earlier
            let verdict = try await run.verdict(logName: name)
            expectInvalid(verdict, [.oneOrder])
            let violation = try #require(verdict.violations.first)
            #expect(violation.sentence.contains("2 records") && violation.sentence.contains("ends at seq 5,"))
            #expect(violation.lines.map { $0.prefix { $0 != " " } } == ["log-earlier.jsonl:7:", "\(name):6:"])
        }
    }

    @Test("an acked and read event that the last dump does not contain is lost") func missingEventIsLost() async throws
    {
        var run = RecordedRun()
        run.files["log-earlier.jsonl"] = run.dump()
        run.log[0].removeLast(2)
        let verdict = try await run.verdict()
        expectInvalid(verdict, [.ackedLoss, .phantom, .oneOrder, .heads])
    }

    @Test("an earlier dump that is shorter or as long is welcome") func anEarlierDumpThat() async throws {
        var run = RecordedRun()
        run.files["log-earlier.jsonl"] = run.dump()
        #expect(try await run.verdict().word == .valid)
        run.files["log-earlier.jsonl"] = run.dump().split(separator: "\n").prefix(2).joined(separator: "\n") + "\n"
        #expect(try await run.verdict().word == .valid)
    }

    @Test("a last dump that is longer than the others needs its name") func aLastDumpThat() async throws {
        let (run, longer) = run(behind: 1)
        var files = ["log-b.jsonl": longer, "log-a.jsonl": run.dump()]
        var unnamed = run
        unnamed.files = files
        expectUnknown(try await unnamed.verdict(logName: ""), "which of them was taken last is not known")
        files["log.jsonl"] = files.removeValue(forKey: "log-b.jsonl")
        unnamed.files = files
        let verdict = try await unnamed.verdict(logName: "")
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("the checker reports no loss after an unknown end of the log") func toleratesUnknownEnd() async throws {
        var run = RecordedRun()
        let lines = run.dump().split(separator: "\n")
        for (count, name) in [(3, "log-a.jsonl"), (4, "log-b.jsonl")] {
            run.files[name] = lines.prefix(count).joined(separator: "\n") + "\n"
        }
        let verdict = try await run.verdict(logName: "")
        expectUnknown(verdict, "which of them was taken last is not known")
        #expect(verdict.reasons.contains { $0.contains("no dump could be read that far") }, "\(verdict.text)")
    }

    @Test("the name of another epoch is no name") func theNameOfAnother() async throws {
        let (run, longer) = run(behind: 1)
        var other = run
        other.files = [
            "log-a.jsonl": longer.replacing("}\n", with: #","epoch":"\#(RecordedRun.epoch)"}"# + "\n"),
            "log-00000000000000bb.jsonl": run.dump()
                .replacing("}\n", with: #","epoch":"\#(RecordedRun.epoch)"}"# + "\n"),
        ]
        expectUnknown(try await other.verdict(logName: ""), "which of them was taken last is not known")
    }

    @Test("dumps that end at one seq need no name") func dumpsThatEndAt() async throws {
        var run = RecordedRun()
        let lines = run.dump().split(separator: "\n")
        run.files["log-a.jsonl"] = run.dump()
        run.files["log-b.jsonl"] = lines.dropFirst(2).joined(separator: "\n") + "\n"
        let verdict = try await run.verdict(logName: "")
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("one dump for each partition is enough") func oneDumpForEach() async throws {
        let run = inTwoPartitions()
        #expect(try await run.verdict().word == .valid)
        var split = run
        for (number, name) in ["log-a.jsonl", "log-b.jsonl"].enumerated() {
            let lines = run.dump().split(separator: "\n").filter { $0.hasPrefix(#"{"partition":\#(number),"#) }
            split.files[name] = lines.joined(separator: "\n") + "\n"
        }
        let verdict = try await split.verdict(logName: "")
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("a partition that the last dump passes over may be trimmed or lost") func aPartitionThatThe() async throws {
        var run = inTwoPartitions()
        run.files["log-earlier.jsonl"] = run.dump()
        let others = run.log.indices.filter { $0 != partition(of: Array("s".utf8), among: 2) }
        for number in others { run.log[number] = [] }
        expectUnknown(try await run.verdict(), "log.jsonl has nothing of partition \(others[0])")
        run.log = [[], []]
        expectUnknown(try await run.verdict(), "log.jsonl has nothing of partition")
    }

    /// Returns the small run in a log of two partitions, with one event in the other partition.
    private func inTwoPartitions() -> RecordedRun {
        var run = RecordedRun()
        let own = partition(of: Array("s".utf8), among: 2)
        let stream = ["t", "u", "v", "w"].first { partition(of: Array($0.utf8), among: 2) != own } ?? ""
        (run.partitions, run.log) = (2, own == 0 ? [run.log[0], []] : [[], run.log[0]])
        run.log[1 - own].append((stream, RecordedRun.event(site: 2, op: 0)))
        run.histories = run.histories.mapValues { lines in
            lines.map {
                $0.replacing(#""partitions":1"#, with: #""partitions":2"#)
                    .replacing(#""partition":0"#, with: #""partition":\#(own)"#)
            }
        }
        run.files["s.snapshot.jsonl"] = run.snapshot("s", seq: 5)
        return run
    }

    // MARK: Differences that are no loss

    @Test("empty seqs after the end are not records") func ignoresEmptySeqs() async throws {
        var run = RecordedRun()
        let end = (6...7).map { #"{"partition":0,"seq":\#($0),"empty":true}"# + "\n" }.joined()
        run.files["log-earlier.jsonl"] = run.dump() + end
        run.histories["reader"]!.insert(#"{"e":"upto","ms":42,"partition":0,"seq":7}"#, at: 7)
        // kcat does not list empty seqs.
        let verdict = try await run.verdict(kcat: true)
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("a last dump that is cut does not show where the log ends") func cutDumpHidesEnd() async throws {
        var (run, earlier) = run(behind: 2)
        run.files["log-earlier.jsonl"] = earlier
        run.files["log.jsonl"] = String(run.dump().dropLast(10))
        expectUnknown(try await run.verdict(logName: ""), "was cut")
    }

    // MARK: Positions after the end

    private func state(seq: Int, digest: String) -> String {
        #"{"e":"state","ms":60,"stream":"s","epoch":"\#(RecordedRun.epoch)","seq":\#(seq),"#
            + #""digest":"\#(digest)","of":"http://a:1"}"#
    }

    @Test("a state beyond the end is of what the log has not") func aStateBeyondThe() async throws {
        var run = RecordedRun()
        run.histories["driver"]!.append(state(seq: 6, digest: run.fold("s", seq: 5).digest(of: "s")))
        expectInvalid(try await run.verdict(), [.heads])
        // A dump that was cut may have contained the record.
        run.files["log.jsonl"] = run.dump() + #"{"partition":0,"#
        expectUnknown(try await run.verdict(logName: ""), "was cut")
        // A trimmed dump also shows where the log ends.
        run.files["log.jsonl"] = run.dump().split(separator: "\n").dropFirst(2).joined(separator: "\n") + "\n"
        expectInvalid(try await run.verdict(logName: ""), [.heads])
    }

    @Test("a snapshot beyond the end is of what the log has not") func aSnapshotBeyondThe() async throws {
        var run = RecordedRun()
        let snapshot = try #require(run.files["s.snapshot.jsonl"])
        run.files["s.snapshot.jsonl"] = snapshot.replacing(#""seq":5,"si"#, with: #""seq":6,"si"#)
        expectInvalid(try await run.verdict(), [.heads])
    }

    @Test("a loaded state beyond the end is of what the log has not") func aLoadedStateBeyond() async throws {
        var run = RecordedRun()
        let loaded = #"{"e":"loaded","ms":11,"stream":"s","epoch":"\#(RecordedRun.epoch)","seq":6}"#
        run.histories["reader"]!.insert(loaded, at: 3)
        expectInvalid(try await run.verdict(), [.heads])
    }
}
