import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// Which of the other nodes are asked, and which are named to clients.
@Suite struct OtherNodesTests {
    private let epoch = Epoch("00000000000000a1")!

    private func node(_ id: String, _ role: String, in epoch: Epoch?, advertised: String? = nil) -> NodeAnnouncement {
        NodeAnnouncement(
            id: id,
            role: role,
            url: "http://\(id)",
            advertised: advertised,
            build: "1",
            epoch: epoch,
            positions: [],
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
        let awake = nodes.filter { $0.id != "hangs" }
        func order(_ turn: Int) -> [String] {
            StatePassage.order(nodes + [left], awake: awake, epoch: epoch, turn: turn).map(\.id)
        }
        #expect(order(0) == ["a", "b", "old", "hangs"])
        #expect(order(1) == ["b", "old", "a", "hangs"])
        #expect(order(3) == order(0))
        #expect(StatePassage.order([], awake: [], epoch: epoch, turn: 5).isEmpty)
        #expect(StatePassage.order(nodes, awake: [], epoch: epoch, turn: 0).map(\.id) == ["hangs", "a", "b", "old"])
    }

    @Test("a client is sent to other gateways, each once, and not back to where it is")
    func others() {
        let nodes = [
            node("me", "gateway", in: epoch, advertised: "ws://me"),
            node("me-before", "gateway", in: epoch, advertised: "ws://me"),
            node("b", "serve", in: epoch, advertised: "ws://b"),
            node("b-before", "serve", in: nil, advertised: "ws://b"),
            node("s", "snapshot", in: epoch, advertised: "ws://s"), node("quiet", "gateway", in: epoch),
        ]
        #expect(Gateway.others(nodes, than: "ws://me") == ["ws://b"])
        #expect(Set(Gateway.others(nodes, than: nil)) == ["ws://b", "ws://me"])
        let many = (0..<100).map { node("\($0)", "gateway", in: epoch, advertised: "ws://\($0)") }
        var named: Set<String> = []
        for _ in 0..<1_000 where named.count < 100 {
            let others = Gateway.others(many, than: nil)
            #expect(Set(others).count == 16)
            named.formUnion(others)
        }
        #expect(named.count == 100, "where there are many, not all clients are sent to the same")
    }
}
