import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests the pages of a stream's sites.
@Suite(.timeLimit(.minutes(5))) struct SitesPageTests {
    private let todo = StreamName("todo")!

    private func site(_ number: Int) -> Site { Site(high: 0x4000, low: 1 << 63 | UInt64(number)) }

    /// Returns an event of a site; its time is 1,000 ms plus the op.
    private func event(_ number: Int, _ op: Op, isLast: Bool = false, base: Seq = -1) -> String {
        let (site, user) = (site(number), "u\(number)")
        return EventText.logged("noop", site, op, base: base, at: 1_000 + op, by: user, isLast: isLast).text
    }

    @Test("sites come by the seqs of their last events, page by page, with user, time and end")
    func pages() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        // Site 0 writes at the seqs 0 and 5, so it is the last one in the list.
        let values = [event(0, 0), event(1, 0), event(2, 0, isLast: true), event(3, 0), event(4, 0), event(0, 1)]
        try await lab.log.append(values, key: "todo", to: 0)
        try await lab.log.append(["other"], key: "else", to: 0)
        try await lab.reach(node, 0, 6)
        let all = try lab.reader(0).sites(of: todo, after: .none, limit: 100)
        #expect(all.seq == 6 && all.to == 6 && all.living == 4 && all.ended == 1 && all.next == nil)
        #expect(all.sites.map(\.seq) == [1, 2, 3, 4, 5])
        #expect(all.sites.map(\.by) == ["u1", "u2", "u3", "u4", "u0"])
        #expect(
            all.sites.map(\.op) == [0, 0, 0, 0, 1] && all.sites.map(\.atMs) == [1_000, 1_000, 1_000, 1_000, 1_001]
        )
        #expect(all.sites.map(\.end) == [-1, 2, -1, -1, -1])

        var (found, after): ([ListedSite], Seq) = ([], .none)
        for _ in 0..<3 {
            let page = try lab.reader(0).sites(of: todo, after: after, limit: 2)
            #expect(page.sites.count <= 2 && page.living == 4 && page.ended == 1)
            found += page.sites
            after = page.to
        }
        #expect(found == all.sites && after == 6)
        #expect(throws: Problem.self) { try lab.reader(0).sites(of: todo, after: 7, limit: 2) }
    }

    @Test("a stream without events has no sites")
    func unwrittenStream() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([event(0, 0)], key: "else", to: 0)
        try await lab.reach(node, 0, 0)
        let page = try lab.reader(0).sites(of: todo, after: .none, limit: 10)
        #expect(page.sites.isEmpty && page.living == 0 && page.ended == 0 && page.seq == 0 && page.to == 0)
    }

    @Test("the time of an event that the index no longer has, or that has no clock, is not known")
    func unknownTimes() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.keptEvents = 10
        let node = try lab.node()
        defer { node.close() }
        let bare = EventText.logged("noop", site(9), 0).text
        try await lab.log.append([event(1, 0)], key: "todo", to: 0)
        try await lab.reach(node, 0, 0)
        try await lab.log.append((0..<30).map { event(2, Op($0)) } + [bare], key: "todo", to: 0)
        try await lab.reach(node, 0, 31)
        let page = try lab.reader(0).sites(of: todo, after: .none, limit: 10)
        #expect(page.sites.map(\.seq) == [0, 30, 31])
        #expect(page.sites.map(\.atMs) == [nil, 1_029, nil], "\(page.sites)")
        let json = String(decoding: page.json(of: todo, lab.identity(0), nowMs: 2_029), as: UTF8.self)
        #expect(json.contains(#""idle_seqs":31,"at":null,"idle_ms":null"#), "\(json)")
        #expect(json.contains(#""idle_seqs":1,"at":1029,"idle_ms":1000"#), "\(json)")
    }

    @Test("a node names the streams that have half of their sites, and counts them, and the number survives a restart")
    func crowded() async throws {
        let lab = try Lab(partitions: 1)
        let names = ["few", "half", "full"]
        let file = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
        for (index, sites) in [CrowdedStream.sitesMin - 1, CrowdedStream.sitesMin, Limits.sites].enumerated() {
            try [UInt8]().withUnsafeBytes { head in
                let name = try #require(StreamName(names[index]))
                try file.setStream(
                    Int64(index + 1),
                    name: name,
                    head: head,
                    digest: 0,
                    sites: sites,
                    lastEvent: .none,
                    figures: nil
                )
            }
        }
        let crowd = try SiteCrowd(of: 0, seq: 7, in: file.connection)
        #expect(crowd.most == Limits.sites && crowd.halfFull == 2)
        #expect(crowd.streams.map(\.stream.description) == ["full", "half"])
        #expect(crowd.streams.map(\.sites) == [Limits.sites, CrowdedStream.sitesMin])

        let metrics = Metrics()
        let node = try lab.node(metrics: metrics)
        defer { node.close() }
        try await eventually("the node has read its file") { node.crowdedStreams.count == 2 }
        let text = metrics.text()
        #expect(text.contains("\nreel_snapshot_largest_stream_sites \(Limits.sites)\n"), "\(text)")
        #expect(text.contains("\nreel_snapshot_half_full_streams 2\n"))
    }

    @Test("the journal names a stream once when it has half of its sites, and once when it has all")
    func logger() throws {
        let lines = Mutex<[String]>([])
        let logger = Logger { line in lines.withLock { $0.append(line) } }
        var watch = CrowdWatch()
        func look(_ sites: Int) -> [String] {
            var crowd = SiteCrowd()
            if sites >= CrowdedStream.sitesMin {
                crowd.streams = [CrowdedStream(stream: todo, partition: 3, seq: 9, sites: sites)]
            }
            watch.look(at: crowd, logger, nowMs: 0)
            return lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }
        #expect(look(49_999).isEmpty)
        let half = look(50_000)
        #expect(half.count == 1 && half[0].contains(#"event="stream has many sites" stream=todo partition=3"#))
        #expect(half.first?.contains("reel site retire todo --idle-events N --dry-run") == true)
        #expect(look(60_000).isEmpty)
        let full = look(100_000)
        #expect(full.count == 1 && full[0].contains(#"event="stream takes no new sites" stream=todo"#))
        #expect(look(100_000).isEmpty && look(10).isEmpty)
        #expect(look(50_000).count == 1, "it has come to half of them once more")
    }
}
