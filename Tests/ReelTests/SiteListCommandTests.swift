import Foundation
import ReelCore
import ReelLab
import ReelLog
import Testing

@testable import ReelTool

/// Tests `reel site list` on a log without nodes.
@Suite struct SiteListCommandTests {
    private let folder: TemporaryFolder
    private let sites: SiteLog

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-sites-")
        sites = SiteLog(folder.path + "/log.sqlite")
    }

    private func list(_ words: String...) async -> CommandRun {
        await CommandRun(["site", "list", "todo", "--log", "sqlite:\(sites.path)"] + words)
    }

    /// Creates ten sites that wrote once each, at the seqs 0 to 9.
    private func makeTen() async throws {
        try await sites.append((0..<10).map { SiteLog.event(site: $0, op: 0, base: Seq($0) - 1) })
    }

    @Test("sites are listed by how long they are idle, as a table and as lines of JSON")
    func listed() async throws {
        try await makeTen()
        try await sites.append([SiteLog.event(site: 0, op: 1, base: 9)])
        let run = await list("--limit", "2")
        #expect(run.code == .done, "\(run)")
        let lines = run.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 4, "\(run)")
        #expect(lines[0].hasPrefix("todo: 10 of 100000 sites, 0 ended and not forgotten; as of seq 10 of partition 0,"))
        #expect(lines[1].hasPrefix("SITE ") && lines[1].contains("USER  OP  SEQ  IDLE SEQS  IDLE TIME  ENDED AT"))
        let row = lines[2].split(separator: " ").map(String.init)
        #expect(Array(row.prefix(5)) == ["\(SiteLog.site(1))", "u1", "0", "1", "9"] && row.last == "-", "\(lines[2])")

        let json = await list("--json", "--limit", "100")
        let rows = try json.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(rows.map { $0["seq"] as? Int } == Array(1...10))
        #expect(rows.map { $0["idle_seqs"] as? Int } == (0...9).reversed())
        #expect(rows.last?["op"] as? Int == 1 && rows.last?["by"] as? String == "u0" && rows.last?["end"] as? Int == -1)
        #expect(rows.allSatisfy { $0["at"] as? Int64 == SiteLog.atMs && $0["idle_ms"] is Int })
        #expect(await list("--ended", "--json").output.isEmpty)
    }

    @Test("site list names a stream without events and a missing log")
    func namesMissingLog() async throws {
        let none = await list()
        #expect(none.code == .failed && none.errors.contains("there is no log at `\(sites.path)`"), "\(none)")
        try await makeTen()
        let run = await CommandRun(["site", "list", "tudo", "--log", "sqlite:\(sites.path)"])
        #expect(run.code == .failed, "\(run)")
        #expect(run.errors.contains("found no sites of stream tudo in partition 0 up to seq 9"), "\(run)")
    }
}
