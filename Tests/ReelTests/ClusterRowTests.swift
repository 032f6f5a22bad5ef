import ReelCore
import Testing

@testable import reel

/// `reel cluster` reads what a node says of the others, and shows it as rows.
@Suite struct ClusterRowTests {
    private func rows(_ body: String) throws -> [ClusterRow] {
        try Array(body.utf8).withUnsafeBytes { try ClusterRow.rows($0) }
    }

    @Test func aNodesAnswerComesBackAsLinesOfJSON() throws {
        let node =
            #"{"id":"n1","role":"gateway","url":"http://a:1","build":"0.1.0","at":1795307224596,"age_ms":2149,"left":true,"#
            + #""ready":false,"roles":[{"role":"gateway","partitions":[{"partition":0,"seq":-1,"lag":0}]},"#
            + #"{"role":"snapshot","partitions":[{"partition":3,"seq":41,"lag":7,"code":"damaged"}]}]}"#
        let rows = try rows(#"{"epoch":"9f","partitions":4,"nodes":[\#(node)],"later":[{}]}"#)
        #expect(rows.count == 1)
        #expect(rows.first?.state == "left")
        let last = ClusterRow.Place(role: "snapshot", partition: 3, seq: 41, lag: 7, code: "damaged")
        #expect(rows.first?.places.last == last)
        #expect(rows.first.map { String(decoding: $0.json, as: UTF8.self) } == node + "\n")
    }

    @Test func aRowSaysHowOldItIs() throws {
        func seen(_ members: String) throws -> String? { try rows(#"{"nodes":[{\#(members)}]}"#).first?.seen }
        #expect(try seen(#""age_ms":2149"#) == "2.1 s ago")
        #expect(try seen(#""at":1,"age_ms":0,"left":false"#) == "0.0 s ago")
        #expect(try seen(#""age_ms":119999,"left":true"#) == "left 119.9 s ago")
        #expect(try seen(#""age_ms":120000"#) == "2 min ago")
        #expect(try seen(#""at":1"#)?.hasSuffix(" min ago") == true, "of an older build")
        #expect(try seen(#""role":"gateway""#) == "-")
    }

    @Test(arguments: [
        "", "[]", #"{"nodes":1}"#, #"{"nodes":[{"id":1}]}"#, #"{"nodes":[{"roles":[{"partitions":[{"seq":"x"}]}]}]}"#,
    ])
    func anythingElseIsRefused(body: String) {
        #expect(throws: ReelError.self) { try rows(body) }
    }

    @Test func aTableIsAsWideAsItsCells() {
        var table = TextTable("NODE", "LAG", numbers: ["LAG"])
        table.add("2712", "7")
        table.add("gateway", "12345")
        table.add("", "-")
        #expect(table.lines == ["NODE       LAG", "2712         7", "gateway  12345", "             -"])
    }
}
