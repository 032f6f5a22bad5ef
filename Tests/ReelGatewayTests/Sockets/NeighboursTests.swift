import ReelCore
import ReelNode
import Testing

@testable import ReelGateway

/// Tests when connected clients receive a changed list of gateways.
@Suite struct NeighboursTests {
    private func connect(_ still: StillGateway, takesNodes: Bool = true) -> (SocketClient, Wire) {
        let (client, wire) = (SocketClient(still.gateway, access: Access(nil)), Wire())
        client.opened(on: wire)
        client.received(text: ClientFrame(.hello(.init(client: "test/1", takesNodes: takesNodes))).encoded())
        return (client, wire)
    }

    /// Returns the lists of nodes that a client got in `nodes` frames.
    private func told(_ wire: Wire) -> [[String]] {
        wire.frames.compactMap { if case .nodes(let nodes) = $0 { nodes } else { nil } }
    }

    @Test("a client that supports node changes receives each change once, and other clients receive none")
    func nodeChanges() throws {
        let still = try StillGateway()
        let (wire, old) = (connect(still).1, connect(still, takesNodes: false).1)
        func pass(_ addresses: Set<String>) {
            still.pass(seconds: 10) { _ in still.gateway.heard(of: addresses) }
        }
        pass([])
        #expect(told(wire).isEmpty)
        pass(["https://b"])
        #expect(told(wire) == [["https://b"]])
        pass(["https://b", "https://c"])
        #expect(told(wire).count == 2 && Set(told(wire)[1]) == ["https://b", "https://c"])
        pass(["https://c"])
        #expect(told(wire).count == 3 && told(wire)[2] == ["https://c"])
        pass([])
        #expect(told(wire).count == 3, "to know of none is of no use")
        #expect(told(old).isEmpty)
    }

    @Test("the gateway does not repeat nodes that the welcome has named")
    func welcomeIsNotRepeated() throws {
        let still = try StillGateway()
        still.gateway.heard(of: ["https://b"])
        let (client, wire) = connect(still)
        guard case .welcome(let welcome) = wire.frames.first else { return #expect(Bool(false), "no welcome") }
        #expect(welcome.nodes == ["https://b"])
        still.pass(seconds: 10) { _ in still.gateway.heard(of: ["https://b"]) }
        #expect(told(wire).isEmpty)
        still.gateway.heard(of: ["https://c"])
        client.received(text: ClientFrame(.renew(token: "t")).encoded())
        still.pass(seconds: 10) { _ in still.gateway.heard(of: ["https://c"]) }
        #expect(told(wire).isEmpty, "the second welcome has named it")
    }

    @Test("where a hundred gateways start, each client gets few frames, and not all at once")
    func storm() throws {
        let still = try StillGateway()
        let wires = (0..<30).map { _ in connect(still).1 }
        var (most, before) = (0, 0)
        let seconds = 20
        still.pass(seconds: seconds + 10) { second in
            let all = wires.reduce(0) { $0 + told($1).count }
            (most, before) = (max(most, all - before), all)
            let count = min(second + 1, seconds) * 5
            still.gateway.heard(of: Set((0..<count).map { "https://\($0)" }))
        }
        for wire in wires {
            #expect((1...seconds / Neighbours.looks + 2).contains(told(wire).count), "\(told(wire).count) frames")
            #expect(told(wire).allSatisfy { $0.count <= Neighbours.namedMax && Set($0).count == $0.count })
        }
        #expect(most <= 2 * wires.count / Neighbours.looks, "\(most) of \(wires.count) clients in one second")
    }

    @Test("a client that reads slowly hears of them once it has read")
    func slowReader() throws {
        let still = try StillGateway()
        let wire = connect(still).1
        wire.left = still.gateway.context.settings.paceBytes + 1
        still.pass(seconds: 10) { _ in still.gateway.heard(of: ["https://b"]) }
        #expect(told(wire).isEmpty)
        wire.left = 0
        still.pass(seconds: 10) { _ in still.gateway.heard(of: ["https://b"]) }
        #expect(told(wire) == [["https://b"]])
    }
}
