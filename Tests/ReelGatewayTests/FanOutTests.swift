import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// One loop of a gateway whose clock stands still, and what its clients are sent while events gather.
@Suite struct FanOutTests {
    private let still: StillGateway
    private let gateway: GatewayLoop
    private let site = Site(high: 1, low: 1)
    private let todo = StreamName("todo")!

    init() throws {
        still = try StillGateway { $0.listenerMicros = 15_000 }
        gateway = still.gateway
    }

    private func subscribe(_ client: SocketClient, _ stream: String) {
        client.received(text: Array(#"{"t":"subscribe","stream":"\#(stream)","after":"now"}"#.utf8))
    }

    private func read(_ seqs: Range<Seq>) {
        for seq in seqs { gateway.received(Batches.batch(from: seq, [.event(todo, site, seq, "x")])) }
    }

    @Test func whatComesFastGoesOutTogether() {
        let (client, wire) = still.connect()
        subscribe(client, "todo")
        read(0..<1)
        #expect(wire.proofs == ["upto -1", "todo 0…0"], "the first one at once")
        read(1..<4)
        still.loop.pass(ms: 14)
        #expect(wire.proofs.count == 2)
        still.loop.pass(ms: 1)
        #expect(wire.proofs == ["upto -1", "todo 0…0", "todo 1…3"])
    }

    @Test func nobodyIsToldOfTheHeadBeforeWhatLiesBeforeIt() {
        let (first, wire) = still.connect()
        subscribe(first, "todo")
        read(0..<3)
        subscribe(first, "note")
        #expect(wire.proofs == ["upto -1", "todo 0…0", "todo 1…2", "upto 2"])
        let (second, late) = still.connect()
        read(3..<5)
        subscribe(second, "todo")
        still.loop.pass(ms: 20)
        #expect(late.proofs == ["upto 4"], "what had gathered when it came is not sent to it")
        read(5..<7)
        gateway.tick()
        #expect(wire.proofs.suffix(3) == ["todo 5…5", "todo 6…6", "upto 6"])
        #expect(late.proofs == ["upto 4", "todo 5…5", "todo 6…6"])
    }
}
