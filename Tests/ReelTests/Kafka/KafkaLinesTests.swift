import Foundation
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelTool

/// Tests the destination of librdkafka's lines.
@Suite(.timeLimit(.minutes(5))) struct KafkaLinesTests {
    private let silent = Console(isTerminal: false) { _, _ in }

    @Test("a node has the lines of librdkafka in its journal") func logger() async throws {
        let lines = Lines()
        var mock: MockBrokers? = try MockBrokers(1)
        let logger = Logger(threshold: .debug) { lines.add($0) }
        let log = try #require(mock).currentLog(lines: LogReports.kafka(silent, logger, debugs: false))
        defer { log.close() }
        _ = try log.bounds(0)
        mock = nil
        try await eventually("the lost broker is in the journal") {
            lines.all.contains {
                $0.contains("level=error event=\"kafka client\" facility=FAIL detail=") && $0.hasSuffix("\n")
            }
        }
    }

    @Test("the lines are clean, have levels, and are limited but for those of a developer") func lines() {
        let lines = Lines()
        let line = LogReports.kafka(silent, Logger(threshold: .debug) { lines.add($0) }, debugs: false)
        line(3, "FAIL", "broker says \u{1b}[31mred\n\u{202e}")
        line(4, "CONFWARN", "w")
        for number in 0..<100 {
            line(3, "FAIL", "again \(number)")
            line(6, "FETCH", "note")
            line(7, "SEND", "debug")
        }
        #expect(lines.all.count { $0.contains("level=error") } == 9)
        #expect(lines.all.count { $0.contains("level=warning") } == 1)
        #expect(lines.all.count { $0.contains("level=debug") } == 200)
        #expect(lines.all.allSatisfy { $0.unicodeScalars.dropLast().allSatisfy { !PrintableText.isControl($0) } })
    }

    @Test("a command prints errors, and with `debug` everything") func command() async {
        for (debugs, count) in [(false, 1), (true, 3)] {
            let printed = Lines()
            let console = Console(isTerminal: false) { _, bytes in printed.add(String(decoding: bytes, as: UTF8.self)) }
            let line = LogReports.kafka(console, nil, debugs: debugs)
            for level in [3, 4, 7] as [Int32] { line(level, "FAIL", "text") }
            #expect(printed.all.count == count && printed.all.first == "kafka: FAIL: text\n")
        }
    }

    @Test("waits for the lock of a log are in the journal of a node, and a command prints them") func lockWaits() {
        let (lines, printed) = (Lines(), Lines())
        let console = Console(isTerminal: false) { _, bytes in printed.add(String(decoding: bytes, as: UTF8.self)) }
        let reports = [
            LogReports.lockWait(console, Logger { lines.add($0) }), LogReports.lockWait(console, nil),
        ]
        for report in reports {
            report(LockWait(file: "/a.lock", waited: .milliseconds(1_050), isOver: false))
            report(LockWait(file: "/a.lock", waited: .milliseconds(7_000), isOver: true))
        }
        #expect(lines.all.count == 2)
        let begun = #"level=warning event="waiting for the lock of the log" file=/a.lock detail="#
        let ended = #"level=info event="got the lock of the log" file=/a.lock waited_ms=7000"#
        #expect(lines.all.first?.contains(begun) == true && lines.all.first?.contains("lslocks") == true)
        #expect(lines.all.last?.contains(ended) == true)
        #expect(printed.all.count == 2 && printed.all.first?.contains("lslocks") == true)
        #expect(printed.all.first?.hasPrefix("reel: waiting for the lock /a.lock after 1050 ms: ") == true)
        #expect(printed.all.last == "reel: got the lock /a.lock after 7000 ms\n")
    }
}
