import ReelCore
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelNode

@Suite struct DrainTests {
    @Test("sends away then ends when all are gone") func sendsAwayThenEnds() {
        var drain = Drain(spreadMs: 100, limitMs: 1_000)
        #expect(drain.tick(nowMs: 0, connections: 0) == .wait)
        #expect(drain.requested(nowMs: 10) == .askToLeave(withinMs: 100))
        #expect(drain.tick(nowMs: 20, connections: 1) == .wait)
        #expect(drain.tick(nowMs: 30, connections: 0) == .end(.allHaveLeft))
        #expect(drain.tick(nowMs: 40, connections: 0) == .wait)
    }

    @Test("ends at the limit") func endsAtTheLimit() {
        var drain = Drain(spreadMs: 100, limitMs: 1_000)
        _ = drain.requested(nowMs: 0)
        #expect(drain.tick(nowMs: 999, connections: 5) == .wait)
        #expect(drain.tick(nowMs: 1_000, connections: 5) == .end(.limit))
    }

    @Test("the first request while a node moves on is not the second") func theFirstRequestWhile() {
        var drain = Drain(spreadMs: 100, limitMs: 1_000)
        #expect(drain.restartForEpoch(nowMs: 0, spreadMs: 30) == .askToLeave(withinMs: 30))
        #expect(drain.requested(nowMs: 1) == .wait)
        #expect(drain.restartForEpoch(nowMs: 2, spreadMs: 30) == .wait)
        #expect(drain.tick(nowMs: 3, connections: 1) == .wait)
        #expect(drain.requested(nowMs: 4) == .end(.toldTwice))
    }

    @Test("a node that moves on ends at the limit") func aNodeThatMoves() {
        var drain = Drain(spreadMs: 100, limitMs: 1_000)
        #expect(drain.restartForEpoch(nowMs: 0, spreadMs: 5_000) == .askToLeave(withinMs: 1_000))
        #expect(drain.requested(nowMs: 900) == .wait)
        #expect(drain.tick(nowMs: 1_000, connections: 5) == .end(.limit))
    }

    @Test("a second request ends at once") func aSecondRequestEnds() {
        var drain = Drain(spreadMs: 100, limitMs: 1_000)
        _ = drain.requested(nowMs: 0)
        #expect(drain.requested(nowMs: 1) == .end(.toldTwice))
    }
}

@Suite struct MetricsTests {
    @Test("families have help and type once") func familiesHaveHelpAnd() {
        let metrics = Metrics()
        metrics.counter("reel_acks_total", "Acks sent.", labels: ["kind": "a"]).add(3)
        metrics.counter("reel_acks_total", "Acks sent.", labels: ["kind": "b\"\n"]).add()
        metrics.gauge("reel_connections", "Open connections.").set(-2)
        metrics.gauge("reel_asked", "Asked when read.") { 7 }
        let text = metrics.text()
        #expect(
            text == """
                # HELP reel_acks_total Acks sent.
                # TYPE reel_acks_total counter
                reel_acks_total{kind="a"} 3
                reel_acks_total{kind="b\\"\\n"} 1
                # HELP reel_connections Open connections.
                # TYPE reel_connections gauge
                reel_connections -2
                # HELP reel_asked Asked when read.
                # TYPE reel_asked gauge
                reel_asked 7

                """
        )
    }

    @Test("a histogram counts what is at or below") func aHistogramCountsWhat() {
        let metrics = Metrics()
        let histogram = metrics.histogram("reel_seconds", "How long.", bounds: [.milliseconds(1), .seconds(10)])
        for ms in [1, 2, 10_000, 11_000] { histogram.record(.milliseconds(ms)) }
        metrics.gauge("reel_waited_seconds", "So long.") { .milliseconds(7_300) }
        #expect(
            metrics.text().split(separator: "\n").dropFirst(2) == [
                #"reel_seconds_bucket{le="0.001"} 1"#, #"reel_seconds_bucket{le="10.0"} 3"#,
                #"reel_seconds_bucket{le="+Inf"} 4"#, "reel_seconds_sum 21.003", "reel_seconds_count 4",
                "# HELP reel_waited_seconds So long.", "# TYPE reel_waited_seconds gauge", "reel_waited_seconds 7.3",
            ]
        )
    }
}

@Suite struct JournalTests {
    @Test("one line with time level and quoted values") func oneLineWithTime() throws {
        let lines = Mutex<[String]>([])
        let logger = Logger(threshold: .warning) { line in lines.withLock { $0.append(line) } }
        logger.info("unheard")
        logger.error("tail failed", ["detail": "two\nlines \"here\"", "partition": "3", "empty": ""])
        let line = try #require(lines.withLock { $0.first })
        #expect(lines.withLock { $0.count } == 1)
        #expect(line.hasSuffix("partition=3 empty=\"\"\n"))
        #expect(line.wholeMatch(of: /time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=error .*\n/) != nil)
        #expect(line.contains(#"detail="two\nlines \"here\"""#))
    }

    @Test("a node escapes characters that a terminal or viewer treats as commands")
    func escapesControls() throws {
        let lines = Lines()
        let logger = Logger { lines.add($0) }
        logger.info("x", ["sub": "an\u{202e}n", "detail": "\u{1b}]0;pwn\u{7}\u{9b}1m\u{2066}\r"])
        let line = try #require(lines.all.first)
        #expect(line.contains(#"sub="an\u202en""#))
        #expect(line.contains(#"detail="\u001b]0;pwn\u0007\u009b1m\u2066\r""#), "\(line)")
    }
}

@Suite struct VoidWatchTests {
    @Test("all are counted and few are named") func allAreCountedAnd() {
        let metrics = Metrics()
        let lines = Mutex<[String]>([])
        let logger = Logger { line in lines.withLock { $0.append(line) } }
        let start = ContinuousClock.now
        let watch = VoidWatch("reel_voids_total", epoch: Epoch(1), metrics: metrics, logger: logger)
        for seq in 0..<100 {
            var tally = VoidTally()
            for _ in 0..<20 {
                Array("k".utf8).withUnsafeBytes { tally.add(VoidRecord(.badEvent, "no"), seq: Seq(seq), key: $0) }
            }
            watch.note(tally, in: 3)
        }
        #expect(metrics.text().contains(#"reel_voids_total{reason="bad_event"} 2000"#))
        #expect(metrics.text().contains(#"reel_voids_total{reason="hole"} 0"#))
        // A busy machine may need more than one window of ten seconds.
        let windows = 1 + Int((ContinuousClock.now - start) / .seconds(10))
        #expect((10...10 * windows).contains(lines.withLock { $0.count }), "ten in ten seconds")
    }

    @Test("a node reports the number of omitted lines with the next line") func reportsOmittedLines() {
        var limiter = LineLimiter(lines: 2, windowMs: 1_000)
        #expect([0, 10, 20, 999].map { limiter.admit(nowMs: $0) } == [0, 0, nil, nil])
        #expect([1_000, 1_001, 1_002].map { limiter.admit(nowMs: $0) } == [2, 0, nil])
        #expect([10, 11, 12].map { limiter.admit(nowMs: $0) } == [1, 0, nil], "the clock was set back")
    }
}

@Suite struct ProblemTests {
    @Test("a problem response contains the code, the status and the first available seq") func problemBody() {
        var problem = Problem(.truncated, "found 3, expected 10 or more \"here\"")
        problem.first = 10
        #expect(problem.status == 410)
        #expect(
            String(decoding: problem.body, as: UTF8.self)
                == #"{"type":"urn:reel:error:truncated","title":"\#(ErrorCode.truncated.title)","status":410,"#
                + #""code":"truncated","detail":"found 3, expected 10 or more \"here\"","first":10}"#
        )
    }

    @Test("a node states the retry time in a retryable error response") func retryAfter() {
        #expect(Problem(.nodeBehind, "").response.headers["retry-after"] == "1")
        #expect(Problem(ReelError(.overloaded, "", retryMs: 2_100)).response.headers["retry-after"] == "3")
    }
}
