import Foundation
import ReelNode
import Synchronization
import Testing

/// Tests the two formats of log lines, and which lines a threshold drops.
@Suite struct JournalFormatTests {
    /// Returns the lines of a logger that got one message of each level.
    private func lines(_ threshold: Logger.Level, _ format: Logger.Format) -> [String] {
        let lines = Mutex<[String]>([])
        let logger = Logger(threshold: threshold, format: format) { line in lines.withLock { $0.append(line) } }
        logger.debug("a", ["k": "v"])
        logger.info("b", ["detail": "x=\"1\"\n\u{1b}[31m\u{202e}é", "event": "taken"])
        logger.warning("c")
        logger.error("d")
        logger.audit("e", ["subject": String(repeating: "\u{7}", count: 128)])
        return lines.withLock { $0 }
    }

    @Test("a node writes each JSON log line as one object, for any content") func oneObjectPerLine() throws {
        let lines = lines(.debug, .json)
        #expect(lines.count == 5)
        for line in lines {
            #expect(line.hasSuffix("}\n") && line.utf8.count { $0 == 10 } == 1)
            let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String])
            #expect(object["time"]?.hasSuffix("Z") == true && object["level"] != nil && object["event"] != nil)
        }
        let second = try #require(JSONSerialization.jsonObject(with: Data(lines[1].utf8)) as? [String: String])
        #expect(second["event"] == "b", "a field takes no name of the line itself")
        #expect(second["detail"] == "x=\"1\"\n\u{1b}[31m\u{202e}é")
    }

    @Test("a threshold drops no audit") func aThresholdDropsNo() {
        #expect(lines(.error, .text).map { $0.contains("level=audit") } == [false, true])
        #expect(lines(.info, .text).count == 4)
    }
}
