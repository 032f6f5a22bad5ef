import ReelCore
import ReelLog
import Testing

@testable import ReelNode

extension PeerTable {
    /// Adds announcements of a log whose partitions do not matter.
    fileprivate mutating func hear(_ announced: [NodeAnnouncement], now: ContinuousClock.Instant) {
        hear(announced, epoch: Epoch(1), ends: [], now: now)
    }
}

/// Tests which nodes of a cluster count as alive, by their announcements.
@Suite struct PeerTableTests {
    private func node(_ id: String, atMs: Int64) -> NodeAnnouncement {
        NodeAnnouncement(
            id: id,
            role: "gateway",
            url: "http://\(id)",
            advertised: nil,
            build: "1",
            positions: [],
            atMs: atMs
        )
    }

    @Test("a node without new announcements while others announce is not alive, whatever its clock says")
    func silentNode() {
        var heard = PeerTable()
        let start = ContinuousClock.now
        for second in 0...12 {
            let stopped = node("stopped", atMs: Int64(min(second, 2)))
            heard.hear([node("good", atMs: -7_000_000 + Int64(second)), stopped], now: start + .seconds(second))
            #expect(heard.alive.map(\.id) == (second < 12 ? ["good", "stopped"] : ["good"]), "\(second)")
        }
        heard.hear([node("good", atMs: 1), node("stopped", atMs: 3)], now: start + .seconds(13))
        #expect(heard.alive.map(\.id) == ["good", "stopped"])
        #expect(heard.nodes.map(\.id) == ["good", "stopped"])
    }

    @Test("a node that leaves is known but not alive until it returns")
    func leavingNode() {
        var heard = PeerTable()
        let start = ContinuousClock.now
        var leaving = node("leaving", atMs: 1)
        heard.hear([node("good", atMs: 1), leaving], now: start)
        #expect(heard.alive.map(\.id) == ["good", "leaving"])
        (leaving.atMs, leaving.hasLeft) = (2, true)
        heard.hear([node("good", atMs: 2), leaving], now: start + .seconds(1))
        #expect(heard.alive.map(\.id) == ["good"] && heard.nodes.map(\.id) == ["good", "leaving"])
        heard.hear([node("good", atMs: 3), node("leaving", atMs: 3)], now: start + .seconds(2))
        #expect(heard.alive.map(\.id) == ["good", "leaving"])
    }

    @Test("all nodes stay alive when no announcements arrive, because the log is unavailable")
    func noAnnouncements() {
        var heard = PeerTable()
        #expect(heard.alive.isEmpty)
        let start = ContinuousClock.now
        for second in [0, 100, 500] {
            heard.hear([node("a", atMs: 1), node("b", atMs: 1)], now: start + .seconds(second))
            #expect(heard.alive.map(\.id) == ["a", "b"])
        }
        heard.hear([node("a", atMs: 1)], now: start + .seconds(501))
        #expect(heard.alive.map(\.id) == ["a"])
    }

    @Test("a position beyond the end of the log is its end, of the node's own log only")
    func clamped() {
        var heard = PeerTable()
        var rogue = node("rogue", atMs: 1)
        rogue.positions = [(0, largestInteger), (1, 5), (2, 3), (1_000_000, 9)].map {
            .init(partition: $0.0, seq: $0.1)
        }
        rogue.folded = [.init(partition: 0, seq: 8)]
        var other = rogue
        (other.id, other.epoch) = ("other", Epoch(2))
        heard.hear([rogue, other], epoch: Epoch(1), ends: [7, 6, .none], now: .now)
        let clamped = heard.nodes[0]
        #expect(clamped.positions.map(\.partition) == [0, 1, 2] && clamped.positions.map(\.seq) == [7, 5, -1])
        #expect(clamped.folded.map(\.seq) == [7])
        #expect(heard.nodes[1] == other, "the positions of another log are not compared with this one")
        #expect(heard.announced == [rogue, other], "the list of the cluster shows what was announced")
        #expect(heard.alive.map(\.id) == ["rogue", "other"])
    }
}
