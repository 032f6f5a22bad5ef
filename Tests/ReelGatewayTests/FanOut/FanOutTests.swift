import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// Tests the frames that one loop of a gateway sends while it coalesces events; the clock
/// moves only when a test moves it.
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

    @Test("the gateway coalesces events that arrive in quick succession") func coalescesFastEvents() {
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

    @Test("a client learns of the head only after the events before it") func headFollowsEvents() {
        let (first, wire) = still.connect()
        subscribe(first, "todo")
        read(0..<3)
        first.received(text: Array(#"{"t":"subscribe","stream":"note","after":-1}"#.utf8))
        #expect(wire.proofs == ["upto -1", "todo 0…0", "note 0…2"], "of todo it has not been sent more")
        still.loop.pass(ms: 15)
        #expect(wire.proofs == ["upto -1", "todo 0…0", "note 0…2", "todo 1…2"])
        read(3..<5)
        still.gateway.tick()
        #expect(wire.proofs.suffix(2) == ["todo 3…4", "upto 4"])
    }

    @Test("a client that joins during coalescing causes no extra write to another client") func joiningCostsNoWrite() {
        let (first, wire) = still.connect()
        subscribe(first, "todo")
        read(0..<2)
        let (second, late) = still.connect()
        for _ in 0..<5 { subscribe(second, "todo") }
        let (third, part) = still.connect()
        third.received(text: Array(#"{"t":"subscribe","stream":"todo","after":"now","models":["task"]}"#.utf8))
        #expect(wire.proofs == ["upto -1", "todo 0…0"], "what gathers for it goes on to gather")
        #expect(Set(late.proofs) == ["upto 1"])
        read(2..<4)
        still.loop.pass(ms: 15)
        #expect(wire.proofs == ["upto -1", "todo 0…0", "todo 1…3"])
        for joined in [late, part] {
            #expect(joined.proofs.last == "todo 2…3", "what had gathered before is not sent to it")
            guard case .events(let events) = joined.frames.last else {
                Issue.record("no events")
                continue
            }
            #expect(events.events.map(\.seq) == [2, 3])
        }
        let (fourth, last) = still.connect()
        read(4..<5)
        subscribe(fourth, "todo")
        still.loop.pass(ms: 15)
        #expect(wire.proofs.last == "todo 4…4")
        #expect(last.proofs == ["upto 4"], "it has nothing of what had gathered")
    }
}
