import Testing

@testable import ReelCheck

/// Tests the checker on logs in which an operator has retired sites.
@Suite struct RetiredSiteTests {
    /// Returns the small run without its reader, and with the given records from seq 3 on. Each event in the log is
    /// acked.
    private func run(_ records: [String]) -> RecordedRun {
        var run = RecordedRun()
        let added = records.map { (key: $0.contains("barrier") ? "~reel" : "s", value: $0) }
        run.log[0] = run.log[0].prefix(3) + added
        let acks = run.log[0].enumerated().compactMap { seq, record -> String? in
            guard let record, let op = run.parts(record)?.op else { return nil }
            return #"{"e":"ack","ms":60,"stream":"s","epoch":"\#(RecordedRun.epoch)","acks":[[1,\#(op),\#(seq)]]}"#
        }
        let sent = run.histories["publisher"]!.filter { !$0.contains(#""e":"ack""#) }
        run.histories["publisher"] = sent.dropLast() + acks + sent.suffix(1)
        (run.histories["reader"], run.files["s.snapshot.jsonl"]) = (nil, nil)
        run.histories["driver"]?.removeAll { $0.contains(#""e":"state""#) }
        return run
    }

    private func event(_ op: Int) -> String { RecordedRun.event(site: 1, op: op) }

    @Test("an acked event of a site that was retired before it need not take effect")
    func retiredBefore() async throws {
        let run = run([RecordedRun.retire(before: 2), event(3), event(4), event(5)])
        #expect(run.fold("s", seq: 6).streams[Text("s")]?.sites.values.map(\.op) == [2])
        let verdict = try await run.verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("a site that has written after the seq of a retirement takes effect like any other")
    func notRetired() async throws {
        let run = run([RecordedRun.retire(before: 1), event(3), event(4), event(5)])
        #expect(run.fold("s", seq: 6).streams[Text("s")]?.sites.values.map(\.op) == [5])
        let verdict = try await run.verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("an acked event without effect is found if its site was retired only after it")
    func retiredAfter() async throws {
        // Op 3 comes too late: ops 4 and 5 overtook it, and then the site was retired.
        let run = run([event(4), event(5), RecordedRun.retire(before: 2), event(3)])
        let verdict = try await run.verdict()
        #expect(Set(verdict.violations.map(\.invariant)) == [.siteOrder], "\(verdict.text)")
        #expect(verdict.violations.contains { $0.sentence.contains("an op before it is missing") }, "\(verdict.text)")
    }

    @Test("states after a retirement are held against the log", arguments: [5, 4])
    func states(before: Int) async throws {
        var run = RecordedRun()
        run.log[0].append(("~reel", RecordedRun.retire(before: 5)))
        // The state of a node that ends the site, or of a node that does not.
        var node = run
        node.log[0][6] = ("~reel", RecordedRun.retire(before: before))
        run.histories["driver"]!.append(node.state("s", seq: 6))
        run.files["whole.snapshot.jsonl"] = node.snapshot("s", seq: 6)
        run.files["delta.snapshot.jsonl"] = node.snapshot("s", seq: 6, after: 5)
        let verdict = try await run.verdict()
        #expect(verdict.word == (before == 5 ? .valid : .invalid), "\(verdict.text)")
        #expect(
            Set(verdict.violations.map(\.invariant)) == (before == 5 ? [] : [.digest, .snapshot]),
            "\(verdict.text)"
        )
    }
}
