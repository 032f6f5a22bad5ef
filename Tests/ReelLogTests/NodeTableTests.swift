import Foundation
import ReelCore
import ReelLog
import Testing

/// Tests the table of node announcements in a log's file.
@Suite struct NodeTableTests {
    private func withLog(_ body: (SQLiteLog) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-nodes-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
        defer { log.close() }
        try body(log)
    }

    private func node(_ id: String, atMs: Int64) -> NodeAnnouncement {
        NodeAnnouncement(id: id, role: "gateway", url: "", advertised: nil, build: "0", atMs: atMs)
    }

    private var nowMs: Int64 { Int64(Date.now.timeIntervalSince1970 * 1_000) }

    @Test("an announcement from the future counts as made now, so that it is forgotten like others")
    func fromTheFuture() throws {
        try withLog { log in
            try log.announce(node("ahead", atMs: .max / 2))
            let ahead = try #require(try log.nodes().first)
            #expect(ahead.atMs <= nowMs && ahead.heardMs <= nowMs)
            #expect(ahead.atMs > nowMs - 60_000)
        }
    }

    @Test("a thousand nodes are kept, those that were announced last")
    func bounded() throws {
        try withLog { log in
            let startMs = nowMs - 300_000
            for number in 0..<1_010 as Range<Int64> {
                try log.announce(node("n\(number)", atMs: startMs + number))
            }
            let nodes = try log.nodes()
            #expect(nodes.count == 1_000)
            #expect(nodes.map(\.atMs).min() == startMs + 10)
            #expect(nodes.map(\.id) == nodes.map(\.id).sorted())
        }
    }

    @Test("the log forgets an announcement after ten minutes")
    func forgetsOldAnnouncement() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-nodes-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
        defer { log.close() }
        let nowMs = Int64(Date.now.timeIntervalSince1970 * 1_000)
        for (id, ageMs) in [("young", 590_000 as Int64), ("old", 600_001)] {
            try log.announce(
                NodeAnnouncement(id: id, role: "gateway", url: "", advertised: nil, build: "0", atMs: nowMs - ageMs)
            )
        }
        #expect(try log.nodes().map(\.id) == ["young"])
    }
}
