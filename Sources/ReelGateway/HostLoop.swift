import ReelBase
import ReelNet
import ReelNode

/// The operations that a gateway's part needs of its loop: an event loop, or the simulator's loop of virtual time.
protocol HostLoop: AnyObject, Sendable {
    /// Milliseconds of a monotonic clock.
    var nowMs: Int64 { get }
    /// Milliseconds since 1970, by the wall clock.
    var wallMs: Int64 { get }

    /// The estimated processor time in microseconds that a write to a socket takes.
    var writeMicros: Double { get }
    /// Runs `body`, which writes to at most `count` sockets, and measures the cost of a write.
    func writing(toMost count: Int, _ body: () -> Void)

    /// Runs `body` at the end of this round, before the written bytes go out.
    func beforeFlush(_ body: @escaping () -> Void)
    /// Runs `body` after this round has written its bytes.
    func afterFlush(_ body: @escaping () -> Void)
    /// Runs `work` on a thread that may block, then `then` on the loop.
    func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void)
    /// Runs `body` on the loop, later: never before `schedule` has returned.
    func schedule(_ body: @escaping () -> Void)
    /// Runs `body` once after `ms` milliseconds, unless the timer is cancelled before.
    @discardableResult func once(after ms: Int64, _ body: @escaping () -> Void) -> any HostTimer
    /// Runs `body` every `ms` milliseconds, until the timer is cancelled.
    func every(_ ms: Int64, _ body: @escaping () -> Void) -> any HostTimer
    /// Returns a function that can be called from any thread. It runs `body` on the loop.
    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void
}

/// A timer of a loop.
protocol HostTimer: AnyObject {
    /// Ends the timer. Its body is not called any more.
    func cancel()
}

extension LoopTimer: HostTimer {}

extension EventLoop: HostLoop {
    var nowMs: Int64 { Int64(clamping: now) }
    var wallMs: Int64 { WallClock.nowMs() }

    func schedule(_ body: @escaping () -> Void) {
        let body = LoopBound(body, on: self)
        execute { body.value() }
    }

    func once(after ms: Int64, _ body: @escaping () -> Void) -> any HostTimer {
        timer(after: .milliseconds(ms), body)
    }

    func every(_ ms: Int64, _ body: @escaping () -> Void) -> any HostTimer {
        timer(after: .milliseconds(ms), every: .milliseconds(ms), body)
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        let bound = LoopBound(body, on: self)
        return { value in bound.loop.execute { bound.value(value) } }
    }
}

/// A client's connection as the gateway sees it: a WebSocket, or one end of a simulated network.
protocol ClientSocket: AnyObject {
    /// True if nothing can be sent any more.
    var isClosed: Bool { get }
    /// The number of bytes that were sent and are not yet with the kernel.
    var pendingBytes: Int { get }
    /// The number of bytes that were sent since the connection was opened.
    var writtenBytes: Int { get }
    /// The number of bytes that have arrived of an incomplete message; nil: there is none.
    var partBytes: Int? { get }
    /// The maximum size of a message that is accepted, in bytes.
    var maxMessage: Int { get set }

    /// A number that stands for the client's address; for IPv6, for the first 64 bits of the address.
    var peerOrigin: UInt64 { get }

    /// Sends a frame.
    func send(_ frame: WebSocketFrame)
    /// Sends a frame before the end of the round, if no bytes wait before it.
    func sendNow(_ frame: WebSocketFrame)
    /// Sends a ping. The answer must carry the same payload.
    func ping(_ payload: [UInt8])
    /// Checks if the client's side has read what it had to read since the last check.
    func checkReadingPace() -> SlowReaderDetector.Finding
    /// Stops the delivery of messages until `release`. Called while a message is delivered.
    func hold()
    /// Ends `hold`.
    func release()
    /// Begins to close. Bytes that were sent before still go out.
    func close(code: UInt16?, reason: String)
    /// Closes at once. Bytes that were sent and not read are discarded.
    func reset()
}

extension WebSocket: ClientSocket {
    var peerOrigin: UInt64 { client?.origin ?? Payer.unknownOrigin }
}
