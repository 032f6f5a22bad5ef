import Foundation
import ReelCore
import Testing

@testable import ReelLab

/// Tests the written form of a history.
@Suite struct HistoryTests {
    @Test("the end counts the lines and nothing follows it") func theEndCountsThe() throws {
        let folder = try TemporaryFolder(prefix: "reel-history-")
        let histories = try HistoryFolder(folder.path)
        let history = histories.history(of: "ann", .client)
        let stream = try #require(StreamName("s"))
        // The count includes the line that gives the site its number.
        history.sent(stream, Site(high: 1, low: 1), ops: 0...1)
        history.left(stream, Site(high: 1, low: 1))
        history.ended(unacked: 0)
        history.reached(stream, nil, seq: -1)
        history.ended(unacked: 1)
        try histories.flush()
        let text = try String(contentsOfFile: "\(folder.path)/ann.history.jsonl", encoding: .utf8)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 5 && text.last == "\n", "\(text)")
        #expect(lines[3].contains(#""e":"left""#) && lines[3].contains(#""stream":"s","site":0"#), "\(text)")
        #expect(lines[4].contains(#""e":"end""#) && lines[4].contains(#""lines":4,"unacked":0"#), "\(text)")
    }

    @Test("where clients saw nothing their histories go and those of others stay") func whereClientsSawNothing() throws
    {
        let folder = try TemporaryFolder(prefix: "reel-history-")
        for hasDriver in [false, true] {
            let path = "\(folder.path)/\(hasDriver)"
            let histories = try HistoryFolder(path)
            _ = histories.history(of: "ann", .client)
            if hasDriver { histories.history(of: "driver", .driver).healed() }
            try histories.flush()
            _ = histories.history(of: "bob", .client)
            histories.discard(.client)
            try histories.flush()
            let names = try? FileManager.default.contentsOfDirectory(atPath: path)
            #expect(names == (hasDriver ? ["driver.history.jsonl"] : nil))
        }
    }

    @Test("a history folder writes the remaining histories after it discards those of clients")
    func writesAfterDiscard() throws {
        let folder = try TemporaryFolder(prefix: "reel-history-")
        let histories = try HistoryFolder("\(folder.path)/run")
        let driver = histories.history(of: "driver", .driver)
        histories.discard(.client)
        driver.healed()
        try histories.flush()
        let text = try String(contentsOfFile: "\(folder.path)/run/driver.history.jsonl", encoding: .utf8)
        #expect(text.contains(#""e":"heal""#), "\(text)")
    }
}
