import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Testing

@testable import ReelGateway

/// A loop that runs everything immediately, and whose clock moves only when a test moves it.
final class StillLoop: HostLoop, @unchecked Sendable {
    private(set) var nowMs: Int64 = 1_000
    var wallMs: Int64 { nowMs }
    /// The estimate is so high that only the first event goes out immediately, and later ones are coalesced.
    let writeMicros = 1e6
    func writing(toMost count: Int, _ body: () -> Void) { body() }
    /// The number of times that a timer has fired.
    private(set) var fired = 0
    /// The timers by their number, with the period of those that repeat.
    private var timers: [Int: (everyMs: Int64?, dueMs: Int64, body: () -> Void)] = [:]
    private var last = 0

    func pass(ms: Int64) {
        nowMs += ms
        for (number, timer) in timers where timer.dueMs <= nowMs {
            fired += 1
            timers[number] = timer.everyMs.map { ($0, timer.dueMs + $0, timer.body) }
            timer.body()
        }
    }

    func beforeFlush(_ body: @escaping () -> Void) { body() }
    func afterFlush(_ body: @escaping () -> Void) { body() }
    func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) { then(work()) }

    func schedule(_ body: @escaping () -> Void) { body() }

    func once(after ms: Int64, _ body: @escaping () -> Void) -> any HostTimer { timer(nowMs + ms, nil, body) }
    func every(_ ms: Int64, _ body: @escaping () -> Void) -> any HostTimer { timer(nowMs + ms, ms, body) }

    private func timer(_ dueMs: Int64, _ everyMs: Int64?, _ body: @escaping () -> Void) -> any HostTimer {
        last += 1
        timers[last] = (everyMs, dueMs, body)
        return HandTimer { [self, number = last] in timers[number] = nil }
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        nonisolated(unsafe) let body = body
        return { value in body(value) }
    }
}

/// A connection that keeps the frames sent to it. The client's side has taken all bytes except `left`.
final class Wire: ClientSocket {
    var maxMessage = SocketClient.helloBytes
    let peerOrigin: UInt64 = 1
    var frames: [ServerFrame.Body] = []
    /// The payloads of the pings.
    var pings: [[UInt8]] = []
    private(set) var closeCode: UInt16?
    private(set) var wasReset = false
    var isClosed: Bool { closeCode != nil || wasReset }
    private(set) var writtenBytes = 0
    /// The number of bytes that the client's side has not taken. Those above `kernelBytes` wait in the gateway.
    var left = 0
    var kernelBytes = 0
    var pendingBytes: Int { max(0, left - kernelBytes) }
    var partBytes: Int?
    private var pace = SlowReaderDetector()

    func send(_ frame: WebSocketFrame) {
        writtenBytes += frame.bytes.count
        do { frames += try Batches.frames(frame).map(\.body) } catch { Issue.record(error) }
    }

    func sendNow(_ frame: WebSocketFrame) { send(frame) }

    /// Writes this number of bytes, which the client's side does not take yet.
    func fill(_ bytes: Int) {
        writtenBytes += bytes
        left += bytes
    }

    func ping(_ payload: [UInt8]) { pings.append(payload) }
    func checkReadingPace() -> SlowReaderDetector.Finding { pace.look(written: writtenBytes, left: left) }
    /// The number of times that the socket is held.
    private(set) var holds = 0
    func hold() { holds += 1 }
    func release() { holds -= 1 }
    func close(code: UInt16?, reason: String) { closeCode = closeCode ?? code }
    func reset() { wasReset = true }

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

/// One loop of a gateway on an empty log of one partition. The clock moves only when a test moves it.
final class StillGateway {
    let loop = StillLoop()
    let log: MemoryLog
    let metrics = Metrics()
    let gateway: GatewayLoop

    init(_ change: (inout GatewaySettings) -> Void = { _ in }) throws {
        log = try MemoryLog(partitions: 1)
        // Otherwise the answer would come on a thread of the log.
        log.onAppend { _, _ in .late }
        gateway = GatewayLoop(on: loop, over: log, metrics, change)
    }

    /// Returns a client that has sent `hello`.
    func connect(access: Access = Access(nil)) -> (SocketClient, Wire) {
        let (client, wire) = (SocketClient(gateway, access: access), Wire())
        client.opened(on: wire)
        client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
        return (client, wire)
    }

    /// Moves the clock by `seconds`, and runs `tick` once in each second.
    func pass(seconds: Int, _ eachSecond: (Int) -> Void = { _ in }) {
        for second in 0..<seconds {
            loop.pass(ms: 1_000)
            eachSecond(second)
            gateway.tick()
        }
    }

    /// Returns the value of a metric; the name includes the labels as the text shows them.
    func metric(_ name: String) -> Int? {
        metrics.text().split(separator: "\n").first { $0.hasPrefix(name + " ") }
            .flatMap { Int($0.dropFirst(name.count + 1)) }
    }
}

extension GatewayLoop {
    /// Creates the only loop of a gateway on a log of one partition.
    convenience init(
        on loop: any HostLoop,
        over log: any EventLog,
        _ metrics: Metrics = Metrics(),
        from: Seq = 0,
        index events: (any EventIndex)? = nil,
        _ change: (inout GatewaySettings) -> Void = { _ in }
    ) {
        var settings = GatewaySettings()
        change(&settings)
        let context = GatewayContext(
            nodeID: "n",
            log: log,
            number: 0,
            bounds: [.empty],
            starts: [WarmStart(from: from)],
            settings: settings,
            logger: Logger { _ in },
            metrics: metrics,
            state: nil
        )
        self.init(on: loop, index: 0, context: context, from: [from], snapshotEvents: events)
    }
}
