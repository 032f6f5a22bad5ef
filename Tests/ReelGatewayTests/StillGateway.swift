import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Testing

@testable import ReelGateway

/// A loop on which everything is done at once, and time passes when it is told to.
final class StillLoop: HostLoop, @unchecked Sendable {
    private(set) var nowMs: Int64 = 1_000
    var wallMs: Int64 { nowMs }
    /// So much that nothing is sent by itself but what comes first.
    let writeMicros = 1e6
    func writing(toMost count: Int, _ body: () -> Void) { body() }
    /// How often a timer has fired.
    private(set) var fired = 0
    private var timers: [Int: (ms: Int64, dueMs: Int64, body: () -> Void)] = [:]
    private var last = 0

    func pass(ms: Int64) {
        nowMs += ms
        for (number, timer) in timers where timer.dueMs <= nowMs {
            fired += 1
            timers[number]?.dueMs += timer.ms
            timer.body()
        }
    }

    func beforeFlush(_ body: @escaping () -> Void) { body() }
    func afterFlush(_ body: @escaping () -> Void) { body() }
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

/// A connection that keeps what it is sent. Its client's side has taken all of it, but for `left` bytes.
final class Wire: ClientSocket {
    var maxMessage = SocketClient.helloBytes
    let peerOrigin: UInt64 = 1
    var frames: [ServerFrame.Body] = []
    /// What the pings carried.
    var pings: [[UInt8]] = []
    private(set) var closeCode: UInt16?
    private(set) var wasReset = false
    var isClosed: Bool { closeCode != nil || wasReset }
    private(set) var writtenBytes = 0
    /// Bytes that the client's side has not taken; only what is more than `kernelBytes` waits here.
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

    /// Sends so many bytes of anything, which the client's side does not take yet.
    func fill(_ bytes: Int) {
        writtenBytes += bytes
        left += bytes
    }

    func ping(_ payload: [UInt8]) { pings.append(payload) }
    func checkReadingPace() -> SlowReaderDetector.Finding { pace.look(written: writtenBytes, left: left) }
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

/// One loop of a gateway whose clock stands still, on an empty log of one partition.
final class StillGateway {
    let loop = StillLoop()
    let log: MemoryLog
    let metrics = Metrics()
    let gateway: GatewayLoop

    init(_ change: (inout GatewaySettings) -> Void = { _ in }) throws {
        log = try MemoryLog(partitions: 1)
        // An answer would come on a thread of the log's.
        log.onAppend { _, _ in .late }
        gateway = GatewayLoop(on: loop, over: log, metrics, change)
    }

    /// A client that has said hello.
    func connect(access: Access = Access(nil)) -> (SocketClient, Wire) {
        let (client, wire) = (SocketClient(gateway, access: access), Wire())
        client.opened(on: wire)
        client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
        return (client, wire)
    }

    /// Lets so many seconds pass, and does once in each what is due by the clock.
    func pass(seconds: Int, _ eachSecond: (Int) -> Void = { _ in }) {
        for second in 0..<seconds {
            loop.pass(ms: 1_000)
            eachSecond(second)
            gateway.tick()
        }
    }

    /// The value of a metric, with its labels as they stand.
    func metric(_ name: String) -> Int? {
        metrics.text().split(separator: "\n").first { $0.hasPrefix(name + " ") }
            .flatMap { Int($0.dropFirst(name.count + 1)) }
    }
}

extension GatewayLoop {
    /// The only loop of a gateway on an empty log of one partition.
    convenience init(
        on loop: any HostLoop,
        over log: any EventLog,
        _ metrics: Metrics = Metrics(),
        _ change: (inout GatewaySettings) -> Void = { _ in }
    ) {
        var settings = GatewaySettings()
        settings.node.loops = 1
        change(&settings)
        let share = GatewayShare(
            nodeID: "n",
            log: log,
            number: 0,
            bounds: [.empty],
            starts: [WarmStart(from: 0)],
            settings: settings,
            logger: Logger { _ in },
            metrics: metrics,
            state: nil
        )
        self.init(on: loop, index: 0, share: share, from: [0])
    }
}
