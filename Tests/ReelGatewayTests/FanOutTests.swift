import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Testing

@testable import ReelGateway

/// One loop of a gateway whose clock stands still, and what its clients are sent while events gather.
@Suite struct FanOutTests {
    /// A loop on which everything is done at once, and time passes when it is told to.
    private final class StillLoop: HostLoop, @unchecked Sendable {
        private(set) var nowMs: Int64 = 1_000
        var wallMs: Int64 { nowMs }
        private var timers: [Int: (ms: Int64, dueMs: Int64, body: () -> Void)] = [:]
        private var last = 0

        func pass(ms: Int64) {
            nowMs += ms
            for (number, timer) in timers where timer.dueMs <= nowMs {
                timers[number]?.dueMs += timer.ms
                timer.body()
            }
        }

        func atRoundEnd(_ body: @escaping () -> Void) { body() }
        func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) { then(work()) }

        func every(_ ms: Int64, _ body: @escaping () -> Void) -> () -> Void {
            last += 1
            timers[last] = (ms, nowMs + ms, body)
            return { [self, number = last] in timers[number] = nil }
        }

        func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
            nonisolated(unsafe) let body = body
            return { value in body(value) }
        }
    }

    /// A connection that keeps what it is sent.
    private final class Wire: ClientSocket {
        var frames: [ServerFrame.Body] = []
        var isClosed: Bool { false }
        var pendingBytes: Int { 0 }
        func send(_ frame: WebSocketFrame) {
            do { frames += try Batches.frames(frame).map(\.body) } catch { Issue.record(error) }
        }
        func ping() {}
        func close(code: UInt16?, reason: String) { Issue.record("closed: \(reason)") }

        /// The frames that prove something, as `events from…to` and `upto seq`.
        var proofs: [String] {
            frames.compactMap { frame in
                switch frame {
                case .events(let part): "\(part.stream) \(part.from)…\(part.to)"
                case .upto(_, let seq): "upto \(seq)"
                default: nil
                }
            }
        }
    }

    private let loop = StillLoop()
    private let gateway: GatewayLoop
    private let site = Site(high: 1, low: 1)
    private let todo = StreamName("todo")!

    init() throws {
        var settings = GatewaySettings()
        settings.listenerMicros = 15_000
        settings.node.loops = 1
        let share = GatewayShare(
            nodeID: "n",
            log: try MemoryLog(partitions: 1),
            number: 0,
            bounds: [.empty],
            starts: [WarmStart(from: 0)],
            settings: settings,
            journal: Journal { _ in },
            metrics: Metrics(),
            state: nil
        )
        gateway = GatewayLoop(on: loop, index: 0, share: share, from: [0])
    }

    private func connect() -> (SocketClient, Wire) {
        let (client, wire) = (SocketClient(gateway, access: Access(nil)), Wire())
        client.opened(on: wire)
        client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
        return (client, wire)
    }

    private func subscribe(_ client: SocketClient, _ stream: String) {
        client.received(text: Array(#"{"t":"subscribe","stream":"\#(stream)","after":"now"}"#.utf8))
    }

    private func read(_ seqs: Range<Seq>) {
        for seq in seqs { gateway.received(Batches.batch(from: seq, [.event(todo, site, seq, "x")])) }
    }

    @Test func whatComesFastGoesOutTogether() {
        let (client, wire) = connect()
        subscribe(client, "todo")
        read(0..<1)
        #expect(wire.proofs == ["upto -1", "todo 0…0"], "the first one at once")
        read(1..<4)
        loop.pass(ms: 14)
        #expect(wire.proofs.count == 2)
        loop.pass(ms: 1)
        #expect(wire.proofs == ["upto -1", "todo 0…0", "todo 1…3"])
    }

    @Test func nobodyIsToldOfTheHeadBeforeWhatLiesBeforeIt() {
        let (first, wire) = connect()
        subscribe(first, "todo")
        read(0..<3)
        subscribe(first, "note")
        #expect(wire.proofs == ["upto -1", "todo 0…0", "todo 1…2", "upto 2"])
        let (second, late) = connect()
        read(3..<5)
        subscribe(second, "todo")
        loop.pass(ms: 20)
        #expect(late.proofs == ["upto 4"], "what had gathered when it came is not sent to it")
        read(5..<7)
        gateway.tick()
        #expect(wire.proofs.suffix(3) == ["todo 5…5", "todo 6…6", "upto 6"])
        #expect(late.proofs == ["upto 4", "todo 5…5", "todo 6…6"])
    }
}
