import ReelCore
import Testing

@testable import ReelTool

/// Tests the conclusions of the doctor from the states of a stream on several nodes.
@Suite struct StreamDoctorTests {
    private let site = Site(high: 1, low: 2)

    /// Returns the state of a stream without events, whose partition is folded up to a seq.
    private func fold(upTo seq: Seq) throws -> Fold {
        var fold = Fold(
            stream: try #require(StreamName("todo")),
            partition: 2,
            epoch: try #require(Epoch("9f00000000000001"))
        )
        fold.advance(to: seq)
        return fold
    }

    private func report(_ states: [Result<Fold, StreamVisit.Failure>], head: Seq = 9) throws -> StreamReport {
        let body = #"{"stream":"todo","epoch":"9f00000000000001","partition":2,"first":0,"head":\#(head)}"#
        return StreamReport(
            stream: try #require(StreamName("todo")),
            head: .success(try StreamAnswer(Array(body.utf8))),
            states: try states.enumerated().map { index, fold in
                StreamReport.State(node: try NodeAddress("127.0.0.1:\(index + 1)"), fold: fold)
            }
        )
    }

    private func findings(_ report: StreamReport) -> [Finding] {
        StreamDiagnosis(report: report, nowMs: 0).findings
    }

    @Test("a snapshot that misses its own digest is a wrong file") func aSnapshotThatMisses() throws {
        let wrong = StreamVisit.Failure(code: .diverged, message: "found another digest")
        let found = try findings(report([.failure(wrong), .success(fold(upTo: 9))]))
        #expect(found.first?.level == .problem)
        #expect(
            found.first?.text == "snapshot node http://127.0.0.1:1 has no right state of todo: found another digest"
        )
        #expect(found.first?.advice?.hasPrefix("Its file is wrong") == true)
    }

    @Test("the doctor warns of a lagging node with the advice of its error code") func warnsOfLaggingNode() throws {
        let behind = StreamVisit.Failure(code: .nodeBehind, message: "not begun yet")
        let found = try findings(report([.failure(behind), .success(fold(upTo: 9))]))
        #expect(found.filter { $0.level == .warning }.map(\.advice) == [ErrorCode.nodeBehind.entry.advice])
    }

    @Test("the doctor reports disagreeing states as a problem and claims no agreement") func reportsDisagreement()
        throws
    {
        var report = try report([.success(fold(upTo: 9)), .success(fold(upTo: 9))])
        report.disagreements = ["at seq 9 a has the digest 1 and b 2"]
        let found = findings(report)
        #expect(found.first?.level == .problem && found.first?.text.contains("different states") == true)
        #expect(!found.contains { $0.text.contains("agree") })
    }

    @Test("the doctor reports a state that no node or only some nodes have checked")
    func reportsUncheckedState() throws {
        let none = try findings(report([]))
        #expect(none.map(\.level) == [.warning], "\(none)")
        #expect(none.first?.text.hasPrefix("the state of todo was not checked: no snapshot node") == true)
        var report = try report([.success(fold(upTo: 9))])
        report.isPartial = true
        let found = findings(report)
        #expect(found.contains { $0.text.hasPrefix("the state of todo was read from http://127.0.0.1:1 only") })
        #expect(!found.contains { $0.text.contains("agree") || $0.text.contains("one snapshot node") }, "\(found)")
    }

    @Test("the doctor reports records that are not folded yet") func reportsUnfoldedRecords() throws {
        let found = try findings(report([.success(fold(upTo: 5))], head: 9))
        #expect(found.contains { $0.text == "partition 2 ends at seq 9, the state is folded up to 5" })
    }

    @Test(
        "a stream warns from half of its sites on, and is a problem when it has all",
        arguments: [
            (49_999, nil), (50_000, Finding.Level.warning), (99_999, .warning), (100_000, .problem),
        ]
    )
    func crowd(_ sites: Int, _ level: Finding.Level?) {
        #expect(Finding.crowd("todo", sites: sites, about: "stream")?.level == level)
    }

    @Test("the doctor reports a stream without events as a problem after the fold is complete")
    func reportsEmptyStream() throws {
        func finding(_ report: StreamReport) throws -> Finding {
            try #require(findings(report).first { $0.text.hasPrefix("todo has no events: ") })
        }
        let state = try fold(upTo: 9)
        #expect(try finding(report([.success(state)], head: 9)).level == .problem)
        #expect(try finding(report([.success(state)], head: 10)).level == .note, "seq 10 may be of it")
        var silent = try report([.success(state)])
        silent.head = .failure(StreamVisit.Failure(code: nil, message: "no gateway answers"))
        #expect(try finding(silent).level == .note, "nobody says where the log ends")
    }

    @Test("where the log does not answer nothing is concluded from that") func whereTheLogDoes() throws {
        var report = try report([.success(fold(upTo: 9))])
        report.site = site
        report.siteFailure = StreamVisit.Failure(code: .logUnavailable, message: "the brokers are away")
        let found = findings(report).filter { $0.about == "site" }
        #expect(found.map(\.level) == [.warning] && found[0].text.hasSuffix(": the brokers are away"), "\(found)")
    }

    @Test("the doctor names the first op in the log when earlier ops of a site are missing") func namesFirstOp() throws
    {
        var report = try report([.success(fold(upTo: 9))])
        report.site = site
        report.siteEvents = [StreamReport.SiteEvent(seq: 4, op: 3, atMs: nil)]
        let found = findings(report).filter { $0.about == "site" }
        #expect(found.first?.level == .problem)
        #expect(found.first?.text.hasSuffix("the first in the log is op 3 at seq 4, not op 0") == true, "\(found)")
    }

    @Test("a site that the stream has forgotten takes a new site, and does not begin again")
    func forgottenSite() throws {
        var fold = try fold(upTo: 7)
        fold.apply(.retire(before: 7, stream: fold.stream), seq: 8)
        fold.advance(to: 9)
        var report = try report([.success(fold)])
        report.site = site
        report.siteEvents = [0, 1].map { StreamReport.SiteEvent(seq: 3 + $0, op: $0, atMs: nil) }
        let found = findings(report).filter { $0.about == "site" }
        #expect(found.map(\.level) == [.warning])
        #expect(found.first?.text.contains("whose op 0 is at seq 3: its horizon") == true, "\(found)")
        #expect(found.first?.text.contains("sites were retired at seq 8") == true, "\(found)")
        #expect(found.first?.advice?.hasPrefix("The device takes a new site.") == true)
    }

    @Test("the doctor notes a site while its events are not folded yet") func notesUnfoldedSite() throws {
        var report = try report([.success(fold(upTo: 9))], head: 12)
        report.site = site
        report.siteEvents = [10, 11].map { StreamReport.SiteEvent(seq: $0, op: $0 - 10, atMs: nil) }
        let found = findings(report).filter { $0.about == "site" }
        #expect(found.map(\.level) == [.note])
        #expect(found.first?.text == "ops 0 to 1 are in the log up to seq 11 and not folded yet")
    }
}
