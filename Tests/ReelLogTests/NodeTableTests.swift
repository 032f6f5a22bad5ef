import Foundation
import ReelCore
import ReelLog
import Testing

/// What nodes announce in a log's file.
@Suite struct NodeTableTests {
    @Test("what was announced more than ten minutes ago is forgotten")
    func forgotten() throws {
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
