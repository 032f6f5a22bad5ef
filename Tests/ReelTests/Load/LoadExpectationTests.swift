import Foundation
import ReelCore
import Testing

@testable import ReelLab

/// Tests the written forms of a run's expectations and of profiles.
@Suite struct LoadExpectationTests {
    private var report: LoadReport {
        var statistics = LoadStatistics()
        for ms in 1...1_000 as ClosedRange<Int64> { statistics.ack.add(ms * 1_000_000) }
        statistics.acked = 1_000
        for ms in [400, 1_500] as [Int64] { statistics.pause.add(ms * 1_000_000) }
        return LoadReport(
            plan: LoadPlan(urls: ["http://a:1"], streams: [StreamName("s")!]),
            statistics: statistics,
            unacked: 0,
            behind: 0,
            problems: [],
            publishingSeconds: 10
        )
    }

    @Test(
        "a report states whether it meets an expectation",
        arguments: [
            ("p99<1s", true), ("p99<980ms", false), ("ack.p50<=510ms", true), ("max<=1s", true), ("max<1s", false),
            ("p99.9 < 1.1s", true), ("pause<2s", true), ("pause<1500ms", false), ("pause.p50<500ms", true),
            ("pause.p99<500ms", false), ("acked>=1000", true),
            ("acked>1000", false),
            ("acked/s>=100", true), ("unacked<=0", true), ("delivery.p99<1s", false), ("cold.max<1s", false),
            ("p50>400ms", true), ("p50<900000us", true),
        ]
    )
    func evaluatesExpectation(text: String, isReached: Bool) throws {
        #expect(try LoadExpectation(text).judge(report).isReached == isReached)
    }

    @Test(
        "an invalid expectation produces an error with an example",
        arguments: [
            "", "p99", "p99<", "p99<25", "p99<fast", "p0<1ms", "p100<1ms", "speed<1ms", "acked>1ms", "p99=1ms", "<1ms",
            "p99<-1ms", "p99<nanms", "p99<infs", "delivery<1ms",
        ]
    )
    func refusesInvalidExpectation(text: String) {
        let error = #expect(throws: LoadFailure.self) { try LoadExpectation(text) }
        #expect(error?.message.contains("expected is such as p99<25ms") == true)
    }

    @Test("a profile of ones own is read") func aProfileOfOnes() throws {
        let profile = try LoadProfile(name: "own", text: "# mine\nreaders = 5\n\nrate=7 # slow\n")
        #expect(profile.numbers == [.readers: 5, .rate: 7])
        var plan = LoadPlan(urls: [], streams: [])
        plan.take(profile.numbers)
        #expect(plan.readers == 5 && plan.rate == 7 && plan.publishers == 10)
    }

    @Test(
        "a load profile names an invalid line",
        arguments: ["readers", "readers=", "readers=-1", "reader=1", "readers=1=2", "rate=0", "size=9999999", "{}"]
    )
    func namesInvalidProfileLine(line: String) {
        let error = #expect(throws: LoadFailure.self) { try LoadProfile(name: "own", text: "rate=1\n\(line)") }
        #expect(error?.message.hasPrefix("line 2 of the profile") == true)
    }

    @Test("the HTML page loads nothing from elsewhere and escapes its text") func pageIsSelfContained() throws {
        var report = report
        report = LoadReport(
            plan: report.plan,
            statistics: report.statistics,
            unacked: 3,
            behind: 0,
            problems: ["3 events were never acked & <lost>"],
            publishingSeconds: 10
        )
        let page = report.page(report.judge([try LoadExpectation("p99<1ms")]))
        #expect(page.hasPrefix("<!doctype html>") && page.contains("not as expected"))
        #expect(page.contains("acked &amp; &lt;lost&gt;") && page.contains("p99&lt;1ms"))
        #expect(!page.contains("http://") && !page.contains("src="), "nothing is loaded from elsewhere")
    }

    @Test("the JSON report contains the plan and the result of each expectation") func reportsJSON() throws {
        let found = report.judge([try LoadExpectation("p99<1ms"), try LoadExpectation("acked>=1000")])
        let json = report.json(found)
        #expect(json.hasPrefix(#"{"complete":true,"as_expected":false,"#), "\(json)")
        #expect(json.contains(#"{"expected":"p99<1ms","found":"\#(found[0].found)","reached":false}"#), "\(json)")
        #expect(json.contains(#"{"expected":"acked>=1000","found":"1000","reached":true}"#), "\(json)")
        #expect(json.contains(#""plan":{"urls":["http://a:1"],"stream":"s","streams":1,"publishers":10,"#), "\(json)")
        #expect(json.contains(#""settle":30,"seed":1}"#), "\(json)")
        #expect(try JSONSerialization.jsonObject(with: Data(json.utf8)) is [String: Any], "\(json)")
    }

    @Test("one second is drawn too") func oneSecondIsDrawn() throws {
        var statistics = report.statistics
        var second = LoadStatistics.Second()
        (second.acked, second.connected) = (7, 3)
        statistics.seconds = [second]
        let short = LoadReport(
            plan: report.plan,
            statistics: statistics,
            unacked: 0,
            behind: 0,
            problems: [],
            publishingSeconds: 1
        )
        let page = short.page([])
        #expect(page.contains(#"<circle class="one""#), "a line of one point draws nothing")
        #expect(page.contains("circle.one{fill:var(--one)}"))
    }
}
