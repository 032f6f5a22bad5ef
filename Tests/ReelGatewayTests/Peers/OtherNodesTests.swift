import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// Tests which other nodes a gateway asks, and which it lists to clients.
@Suite struct OtherNodesTests {
    private let epoch = Epoch("00000000000000a1")!

    private func node(
        _ id: String,
        _ role: String,
        in epoch: Epoch?,
        at seq: Seq? = nil,
        advertised: String? = nil
    ) -> NodeAnnouncement {
        NodeAnnouncement(
            id: id,
            role: role,
            url: "http://\(id)",
            advertised: advertised,
            build: "1",
            epoch: epoch,
            positions: seq.map { [.init(partition: 3, seq: $0)] } ?? [],
            atMs: 1
        )
    }

    @Test("state is asked of the nodes that have it of this log, in turn, and last of those that may hang")
    func state() {
        let nodes = [
            node("g", "gateway", in: epoch), node("former", "snapshot", in: Epoch("00000000000000b2")),
            node("hangs", "snapshot", in: epoch), node("a", "snapshot", in: epoch), node("b", "serve", in: epoch),
            node("old", "snapshot", in: nil),
        ]
        var left = node("left", "snapshot", in: epoch)
        left.hasLeft = true
        let alive = nodes.filter { $0.id != "hangs" }
        func order(_ turn: Int) -> [String] {
            SnapshotProxy.order(nodes + [left], alive: alive, epoch: epoch, 3, turn: turn).map(\.id)
        }
        #expect(order(0) == ["a", "b", "old", "hangs"])
        #expect(order(1) == ["b", "old", "a", "hangs"])
        #expect(order(3) == order(0))
        #expect(SnapshotProxy.order([], alive: [], epoch: epoch, 3, turn: 5).isEmpty)
        #expect(
            SnapshotProxy.order(nodes, alive: [], epoch: epoch, 3, turn: 0).map(\.id) == ["hangs", "a", "b", "old"]
        )
    }

    @Test("the gateway asks nodes that have folded before a node that folds from the beginning")
    func newcomer() {
        let nodes = [
            node("new", "snapshot", in: epoch, at: 200), node("a", "snapshot", in: epoch, at: 99_000),
            node("b", "snapshot", in: epoch, at: 99_900), node("begins", "snapshot", in: epoch),
        ]
        let asked = (0..<4).map { turn in
            SnapshotProxy.order(nodes, alive: nodes, epoch: epoch, 3, turn: turn).map(\.id)
        }
        #expect(asked.allSatisfy { Set($0.prefix(2)) == ["a", "b"] && $0.count == 4 })
        #expect(Set(asked.map { $0[0] }) == ["a", "b"])
    }

    @Test("a client is sent to other gateways, each once, and not back to where it is")
    func others() {
        let nodes = [
            node("me", "gateway", in: epoch, advertised: "ws://me"),
            node("me-before", "gateway", in: epoch, advertised: "ws://me"),
            node("b", "serve", in: epoch, advertised: "ws://b"),
            node("b-before", "serve", in: nil, advertised: "ws://b"),
            node("s", "snapshot", in: epoch, advertised: "ws://s"), node("quiet", "gateway", in: epoch),
            node("long", "gateway", in: epoch, advertised: "ws://" + String(repeating: "x", count: 1_000_000)),
        ]
        #expect(Gateway.others(nodes, than: "ws://me") == ["ws://b"])
        #expect(Gateway.others(nodes, than: nil) == ["ws://b", "ws://me"])
        let many = (0..<100).map { node("\($0)", "gateway", in: epoch, advertised: "ws://\($0)") }
        var named: Set<String> = []
        for _ in 0..<1_000 where named.count < 100 {
            let others = Neighbours.some(of: Gateway.others(many, than: nil))
            #expect(Set(others).count == 16)
            named.formUnion(others)
        }
        #expect(named.count == 100, "where there are many, not all clients are sent to the same")
    }
}
