import ReelKafka
import ReelLog
import Testing

/// Tests the time at which a node was last heard, which must not depend on the node's clock.
@Suite struct HeardNodesTests {
    private let minute: Int64 = 60_000
    private let now: Int64 = 1_000 * 60_000

    private func node(_ id: String, atMs: Int64) -> NodeAnnouncement {
        NodeAnnouncement(id: id, role: "snapshot", url: "", advertised: nil, build: "0", atMs: atMs)
    }

    private func heard(_ records: [NodeAnnouncement]) -> HeardNodes {
        var heard = HeardNodes()
        for record in records { heard.hear(record, nowMs: now) }
        heard.hasReadAll(forgettingBefore: now - 10 * minute)
        return heard
    }

    @Test("a node with a clock 15 minutes slow counts as heard with the records around its own")
    func slowClock() {
        let late = node("late", atMs: now - 15 * minute)
        let heard = heard([node("other", atMs: now - 2_000), late])
        #expect(heard.nodes["late"]?.heardMs == now - 2_000)
        #expect(heard.nodes["late"]?.atMs == now - 15 * minute, "what it said stays what it said")
    }

    @Test("a node with a fast clock counts as heard now and makes no other node younger")
    func fastClock() {
        let heard = heard([node("ahead", atMs: now + 15 * minute), node("gone", atMs: now - 11 * minute)])
        #expect(heard.nodes["ahead"]?.heardMs == now)
        #expect(heard.nodes["gone"] == nil)
    }

    @Test("a thousand nodes are kept, those that were heard last")
    func bounded() {
        let records = (0..<5_000 as Range<Int64>).map { node("n\($0)", atMs: now - 5_000 + $0) }
        let heard = heard(records)
        #expect(heard.nodes.count == 1_000)
        #expect(heard.nodes.values.map(\.atMs).min() == now - 1_000)
    }

    @Test("a node announced after the first read counts as heard on arrival and expires after ten minutes")
    func expiresAfterArrival() {
        var heard = heard([])
        heard.hear(node("late", atMs: 0), nowMs: now)
        heard.hasReadAll(forgettingBefore: now - 10 * minute)
        #expect(heard.nodes["late"]?.heardMs == now)
        heard.hasReadAll(forgettingBefore: now + 1)
        #expect(heard.nodes.isEmpty)
    }
}
