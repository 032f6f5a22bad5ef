import ReelNet
import ReelNode

/// What a part of a gateway needs of the loop that it lives on: an event loop, or the simulator's loop of virtual time.
protocol HostLoop: AnyObject, Sendable {
    /// Milliseconds of a clock that only goes forward.
    var nowMs: Int64 { get }
    /// Milliseconds since 1970, for people to read.
    var wallMs: Int64 { get }

    /// About how many microseconds of processor time a write to a socket takes.
    var writeMicros: Double { get }
    /// Writes to so many sockets at most.
    func writing(toMost count: Int, _ body: () -> Void)

    /// Runs the body at the end of this round, before what was written goes out.
    func beforeFlush(_ body: @escaping () -> Void)
    /// Runs the body behind what this round writes.
    func afterFlush(_ body: @escaping () -> Void)
    /// Runs the work where it may block, then the rest on the loop.
    func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void)
    /// Runs the body again and again, until what comes back is called.
    func every(_ ms: Int64, _ body: @escaping () -> Void) -> () -> Void
    /// The body, to be called from any thread: it then runs on the loop.
    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void
}

extension EventLoop: HostLoop {
    var nowMs: Int64 { Int64(clamping: now) }
    var wallMs: Int64 { WallClock.nowMs() }

    func every(_ ms: Int64, _ body: @escaping () -> Void) -> () -> Void {
        let timer = timer(after: .milliseconds(ms), every: .milliseconds(ms), body)
        return { timer.cancel() }
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        let bound = LoopBound(body, on: self)
        return { value in bound.loop.execute { bound.value(value) } }
    }
}

/// What a client's connection is to the gateway: a WebSocket, or one end of a simulated network.
protocol ClientSocket: AnyObject {
    /// Whether nothing can be sent any more.
    var isClosed: Bool { get }
    /// Bytes sent and not yet with the kernel.
    var pendingBytes: Int { get }
    /// Bytes sent so far.
    var writtenBytes: Int { get }
    /// How much has come of a message that is not whole yet; nil: none has begun.
    var partBytes: Int? { get }
    /// The largest message that is taken, in bytes.
    var maxMessage: Int { get set }

    /// A number that stands for the client's address; for IPv6, for the first 64 bits of the address.
    var peerOrigin: UInt64 { get }

    /// Sends a frame.
    func send(_ frame: WebSocketFrame)
    /// The same before the end of the round, where nothing waits before it.
    func sendNow(_ frame: WebSocketFrame)
    /// Asks for a sign of life, which carries the same payload.
    func ping(_ payload: [UInt8])
    /// Looks whether the client's side has taken what it had to since the look before.
    func checkReadingPace() -> SlowReaderDetector.Finding
    /// Begins to close; what was sent before goes out.
    func close(code: UInt16?, reason: String)
    /// Cuts it off at once; what was sent and not read is thrown away.
    func reset()
}

extension WebSocket: ClientSocket {
    var peerOrigin: UInt64 { client?.origin ?? Payer.unknownOrigin }
}
