import ReelCore
import ReelLog
import Testing

@testable import ReelNode

/// Who of a cluster is awake, by what was heard of it.
@Suite struct NodesHeardTests {
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

    @Test("who announces nothing new while others do is not awake until it does, whatever its clock says")
    func asleep() {
        var heard = NodesHeard()
        let start = ContinuousClock.now
        for second in 0...12 {
            let stopped = node("stopped", atMs: Int64(min(second, 2)))
            heard.hear([node("good", atMs: -7_000_000 + Int64(second)), stopped], now: start + .seconds(second))
            #expect(heard.awake.map(\.id) == (second < 12 ? ["good", "stopped"] : ["good"]), "\(second)")
        }
        heard.hear([node("good", atMs: 1), node("stopped", atMs: 3)], now: start + .seconds(13))
        #expect(heard.awake.map(\.id) == ["good", "stopped"])
        #expect(heard.nodes.map(\.id) == ["good", "stopped"])
    }

    @Test("who leaves is not awake, and still known; who comes back is")
    func left() {
        var heard = NodesHeard()
        let start = ContinuousClock.now
        var leaving = node("leaving", atMs: 1)
        heard.hear([node("good", atMs: 1), leaving], now: start)
        #expect(heard.awake.map(\.id) == ["good", "leaving"])
        (leaving.atMs, leaving.hasLeft) = (2, true)
        heard.hear([node("good", atMs: 2), leaving], now: start + .seconds(1))
        #expect(heard.awake.map(\.id) == ["good"] && heard.nodes.map(\.id) == ["good", "leaving"])
        heard.hear([node("good", atMs: 3), node("leaving", atMs: 3)], now: start + .seconds(2))
        #expect(heard.awake.map(\.id) == ["good", "leaving"])
    }

    @Test("where nobody announces anything, it is the log that is away")
    func silence() {
        var heard = NodesHeard()
        #expect(heard.awake.isEmpty)
        let start = ContinuousClock.now
        for second in [0, 100, 500] {
            heard.hear([node("a", atMs: 1), node("b", atMs: 1)], now: start + .seconds(second))
            #expect(heard.awake.map(\.id) == ["a", "b"])
        }
        heard.hear([node("a", atMs: 1)], now: start + .seconds(501))
        #expect(heard.awake.map(\.id) == ["a"])
    }
}
