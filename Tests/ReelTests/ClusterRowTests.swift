import ReelCore
import Testing

@testable import ReelTool

/// Tests that `reel cluster` reads a node's answer about the other nodes and shows it as rows.
@Suite struct ClusterRowTests {
    private func rows(_ body: String) throws -> [ClusterRow] {
        try Array(body.utf8).withUnsafeBytes { try ClusterRow.rows($0) }
    }

    @Test("a nodes answer comes back as lines of JSON") func aNodesAnswerComes() throws {
        let node =
            #"{"id":"n1","role":"gateway","url":"http://a:1","build":"0.1.0","at":1795307224596,"age_ms":2149,"left":true,"#
            + #""ready":false,"roles":[{"role":"gateway","partitions":[{"partition":0,"seq":-1,"lag":0}]},"#
            + #"{"role":"snapshot","partitions":[{"partition":3,"seq":41,"lag":0,"code":"damaged"}]}]}"#
        let rows = try rows(#"{"epoch":"9f","partitions":4,"nodes":[\#(node)],"later":[{}]}"#)
        #expect(rows.count == 1)
        let last = ClusterRow.Place(role: "snapshot", partition: 3, seq: 41, lag: 0, code: "damaged")
        #expect(rows.first?.places.last == last)
        #expect(rows.first.map { String(decoding: $0.json, as: UTF8.self) } == node + "\n")
    }

    @Test("a row shows the age of its announcement") func showsAge() throws {
        func seen(_ members: String) throws -> String? { try rows(#"{"nodes":[{\#(members)}]}"#).first?.seen }
        #expect(try seen(#""age_ms":2149"#) == "2.1 s ago")
        #expect(try seen(#""at":1,"age_ms":0,"left":false"#) == "0.0 s ago")
        #expect(try seen(#""age_ms":119999,"left":true"#) == "left 119.9 s ago")
        #expect(try seen(#""age_ms":120000"#) == "2 min ago")
        #expect(try seen(#""at":1"#)?.hasSuffix(" min ago") == true, "of an older build")
        #expect(try seen(#""role":"gateway""#) == "-")
    }

    /// Returns a node in the form of an answer. Without `url`, its URL contains `id`.
    private func node(
        _ id: String,
        url: String? = nil,
        ageMs: Int64,
        ready: Bool = true,
        left: Bool = false,
        seq: Seq = 0,
        role: String = "gateway"
    ) -> String {
        #"{"id":"\#(id)","role":"\#(role)","url":"\#(url ?? "http://\(id):1")","build":"1","at":1,"age_ms":\#(ageMs),"#
            + (left ? #""left":true,"# : "")
            + #""ready":\#(ready),"roles":[{"role":"\#(role)","partitions":[{"partition":0,"seq":\#(seq),"lag":9}]}]}"#
    }

    private func concluded(_ nodes: [String], newestMs: Int64? = nil) throws -> [ClusterRow] {
        var rows = try rows(#"{"nodes":[\#(nodes.joined(separator: ","))]}"#)
        ClusterRow.conclude(&rows, newestMs: newestMs ?? rows.compactMap(\.ageMs).min() ?? 0)
        return rows.sorted(by: ClusterRow.isBefore)
    }

    @Test("a node is ready, not ready, leaving, left, dead or replaced, and those that are gone come last")
    func states() throws {
        let rows = try concluded([
            node("d", ageMs: 300_000), node("l", ageMs: 60_000, left: true), node("g", ageMs: 3_000, left: true),
            node("old", url: "http://b:1", ageMs: 9_000), node("b", ageMs: 500, ready: false), node("c", ageMs: 1_999),
        ])
        #expect(rows.map(\.id) == ["b", "c", "g", "l", "d", "old"])
        #expect(rows.map(\.state) == [.notReady, .ready, .leaving, .left, .dead, .replaced])
        #expect(rows.map(\.largestLag) == [0, 0, 0, nil, nil, nil])
    }

    @Test("a node that continues to announce itself stays visible beside another node with its URL")
    func keepsBothNodes() throws {
        let rows = try concluded([
            node("a", url: "http://a:1", ageMs: 2_400), node("z", url: "http://a:1", ageMs: 100),
        ])
        #expect(rows.map(\.state) == [.ready, .ready])
        let left = try concluded([
            node("a", url: "http://a:1", ageMs: 2_400, left: true), node("z", url: "http://a:1", ageMs: 100),
        ])
        #expect(left.map(\.state) == [.ready, .replaced])
    }

    @Test("two nodes that announce that they listen everywhere do not replace each other")
    func everywhere() throws {
        let rows = try concluded([
            node("a", url: "http://0.0.0.0:7350", ageMs: 500), node("b", url: "http://0.0.0.0:7350", ageMs: 900),
        ])
        #expect(rows.map(\.state) == [.ready, .ready])
    }

    @Test("where all announcements are old the log is away from the node that was asked, and no node is called dead")
    func logAway() throws {
        let nodes = [node("a", ageMs: 60_500), node("b", ageMs: 61_900), node("c", ageMs: 75_000)]
        #expect(try concluded(nodes).map(\.state) == [.ready, .ready, .dead])
        #expect(try concluded(nodes, newestMs: 0).map(\.state) == [.dead, .dead, .dead], "the log was asked itself")
    }

    @Test("an idle cluster has no lag, however old the position of a dead node is")
    func lags() throws {
        let rows = try concluded([
            node("dead", ageMs: 300_000, seq: 10), node("a", ageMs: 1_900, seq: 389_110),
            node("s", ageMs: 100, seq: 389_110, role: "snapshot"), node("early", ageMs: 2_500, seq: 100_000),
        ])
        #expect(rows.map(\.id) == ["a", "early", "s", "dead"])
        #expect(rows.map(\.largestLag) == [0, 0, 0, nil])
        let behind = try concluded([node("a", ageMs: 1_900, seq: 500), node("s", ageMs: 100, seq: 90)])
        #expect(behind.map(\.largestLag) == [0, 410])
    }

    @Test(
        "figures that cannot be true cost the line of their node, and no other line",
        arguments: [
            #"{"partition":0,"seq":9007199254740991,"lag":9007199254740992}"#, #"{"partition":0,"seq":1e99,"lag":0}"#,
            #"{"partition":0,"seq":-2,"lag":0}"#, #"{"partition":0,"seq":"x"}"#,
        ]
    )
    func absurd(place: String) throws {
        let rogue =
            #"{"id":"r","role":"gateway","url":"http://r:1","build":"1","age_ms":1500,"ready":true,"#
            + #""roles":[{"role":"gateway","partitions":[\#(place)]}]}"#
        let rows = try concluded([rogue, node("a", ageMs: 1_000, seq: 7), node("b", ageMs: 100, seq: 5)])
        #expect(rows.map(\.id) == ["a", "b", "r"] && rows.map(\.largestLag) == [0, 2, nil])
        #expect(rows.map { $0.fault != nil } == [false, false, true], "\(rows)")
    }

    @Test("anything else is refused", arguments: ["", "[]", #"{"nodes":1}"#])
    func anythingElseIsRefused(body: String) {
        #expect(throws: ReelError.self) { try rows(body) }
    }

    @Test("a table is as wide as its cells") func aTableIsAs() {
        var table = TextTable("NODE", "LAG", numbers: ["LAG"])
        table.add("2712", "7")
        table.add("gateway", "12345")
        table.add("", "-")
        #expect(table.lines == ["NODE       LAG", "2712         7", "gateway  12345", "             -"])
    }
}
