import CLibuv
import Glibc

/// What a connection tells its owner. All calls are on the loop; none comes after `closed`.
protocol TCPHandler: AnyObject {
    /// Bytes came; they are valid during the call only.
    func received(_ bytes: Span<UInt8>)
    /// The peer sends no more. What is written still reaches it.
    func ended()
    /// All that was written is with the kernel.
    func drained()
    /// The deadline of the connection passed.
    func deadlinePassed()
    /// The connection is gone; nil if this side closed it.
    func closed(_ error: NetError?)
    /// The TLS handshake is done.
    func secured()
    /// The peer has spoken without TLS where it is expected. What is written now goes out plain.
    func spokeWithoutTLS()
}

extension TCPHandler {
    func secured() {}
    func spokeWithoutTLS() {}
}

/// One TCP connection on its loop. It lives until it is closed, by either side.
///
/// Writes are collected until what came is handled, or else until the end of the loop's round, and offered to the
/// kernel in one call, but for those of `writeNow`. What the kernel does not take waits as it is, shared arrays shared;
/// only the piece in front is copied for libuv. With TLS the bytes are sealed right before they are offered, and opened
/// right before the handler gets them.
///
/// There are tens of thousands: its fields are in the order that leaves no room between them.
final class TCPConnection: Timed {
    /// A piece of at most `WriteQueue.chunkBytes`.
    private var inFlight: Int32 = 0
    /// The owner; the connection keeps it until `closed`. It decides when the deadline passes.
    var handler: (any TCPHandler)?
    let handle: UnsafeMutablePointer<uv_tcp_t>
    /// Bytes that have left the queue, for the kernel or for libuv to write.
    private(set) var passed = 0
    /// How the far side takes what it is sent.
    var pace = SlowReaderDetector()
    /// What goes to the kernel as it is.
    var queue = WriteQueue()
    private(set) var state: State = []
    /// The TLS on it, if there is any.
    var tls: TLSSession?
    /// The PROXY header at the beginning of a connection from a trusted proxy; nil for other connections.
    var greeting: ProxyGreeting?

    struct State: OptionSet {
        let rawValue: UInt8
        static let awaitsFlush = State(rawValue: 1)
        static let isReading = State(rawValue: 2)
        static let isFinishing = State(rawValue: 4)
        static let isShutDown = State(rawValue: 8)
        static let isClosed = State(rawValue: 16)
        static let hasEnded = State(rawValue: 32)
        static let isReset = State(rawValue: 64)
        static let isReceiving = State(rawValue: 128)
    }

    /// How long a finished connection waits for the peer's end, so that it can read the last answer.
    private static let linger = Duration.seconds(1)

    init(loop: EventLoop) {
        handle = .allocate(capacity: 1)
        super.init(on: loop)
        uv_tcp_init(loop.handle, handle)
        handle.pointee.data = Context.pass(self)
    }

    /// Takes over an accepted descriptor; it is closed if libuv does not want it.
    convenience init(loop: EventLoop, descriptor: Int32) throws(NetError) {
        self.init(loop: loop)
        let status = uv_tcp_open(handle, descriptor)
        guard status == 0 else {
            Glibc.close(descriptor)
            close()
            throw NetError(status: status, "taking over a connection")
        }
    }

    // MARK: Reading

    /// Begins or goes on to read.
    func resumeReading() {
        guard state.isDisjoint(with: [.isReading, .isClosed, .hasEnded]) else { return }
        state.insert(.isReading)
        uv_read_start(stream, Self.lendBuffer, Self.read)
    }

    /// Reads no more until `resumeReading`: the peer feels it when the kernel's buffers are full.
    func pauseReading() {
        guard state.contains(.isReading) else { return }
        state.remove(.isReading)
        uv_read_stop(stream)
    }

    /// The loop has one buffer for all: what came is used before the next read.
    private static let lendBuffer: uv_alloc_cb = { handle, _, buffer in
        let shared = handle!.pointee.loop.eventLoop.readBuffer
        buffer!.pointee = uv_buf_init(shared.baseAddress!.assumingMemoryBound(to: CChar.self), UInt32(shared.count))
    }

    private static let read: uv_read_cb = { stream, count, buffer in
        let connection = Context.borrow(stream!.pointee.data, as: TCPConnection.self)
        if count > 0 {
            let bytes = UnsafeRawBufferPointer(start: buffer!.pointee.base, count: count)
            connection.received(Span(_unsafeElements: bytes.bindMemory(to: UInt8.self)))
        } else if count == Int(UV_EOF.rawValue) {
            connection.receivedEnd()
        } else if count < 0 {
            connection.close(NetError(status: Int32(truncatingIfNeeded: count), "reading"))
        }
    }

    private func received(_ bytes: Span<UInt8>) {
        // A finished connection still reads, so that the kernel does not answer late bytes with a reset.
        guard !state.contains(.isFinishing) else { return }
        state.insert(.isReceiving)
        if let greeting, greeting.isOpen { receivedGreeting(bytes, greeting) } else { receivedBehindGreeting(bytes) }
        state.remove(.isReceiving)
        // Now, so that the answers to thousands who ask in one round are not held all at once.
        if state.contains(.awaitsFlush) { flush() }
    }

    func receivedBehindGreeting(_ bytes: Span<UInt8>) {
        if let tls { receivedSealed(bytes, tls) } else { handler?.received(bytes) }
    }

    private func receivedEnd() {
        state.remove(.isReading)
        if let tls, !tls.hasEnded, !state.contains(.isFinishing) { return brokeOff(tls) }
        receivedLast()
    }

    /// The peer sends no more, and has said so.
    func receivedLast() {
        guard !state.contains(.hasEnded) else { return }
        state.insert(.hasEnded)
        if !state.contains(.isFinishing) {
            handler?.ended()
        } else if state.contains(.isShutDown) {
            close()
        }
    }

    // MARK: Writing

    /// Bytes written and not yet with the kernel: what a slow reader costs.
    var pendingBytes: Int { queue.count + Int(inFlight) + (tls?.unsealed.count ?? 0) }

    /// Whether nothing can be written any more.
    var isClosed: Bool { !state.isDisjoint(with: [.isClosed, .isFinishing]) }

    /// Writes at the end of the loop's round. The array is shared, never copied, so that one can go to many. Does
    /// nothing once the connection is closed.
    func write(_ bytes: [UInt8]) {
        guard !isClosed else { return }
        if let tls { tls.unsealed.append(bytes) } else { queue.append(bytes) }
        awaitFlush()
    }

    /// Writes now what the kernel takes now, and the rest as `write` does; all of it so where something waits already.
    /// No handler is called meanwhile.
    func writeNow(_ bytes: [UInt8]) {
        guard tls == nil, pendingBytes == 0, state.isDisjoint(with: [.awaitsFlush, .isClosed, .isFinishing]) else {
            return write(bytes)
        }
        let taken = bytes.withUnsafeBytes(offer)
        if taken == bytes.count { return passed += taken }
        queue.append(bytes)
        passOn(max(0, taken))
        awaitFlush()
    }

    /// Ends in good order: what was written goes out, then the sending side is shut, and what still comes is thrown
    /// away until the peer ends too, for a second at most.
    func finish() {
        guard !isClosed else { return }
        state.insert(.isFinishing)
        awaitFlush()
    }

    func awaitFlush() {
        guard !state.contains(.awaitsFlush) else { return }
        state.insert(.awaitsFlush)
        if !state.contains(.isReceiving) { loop.flushAtRoundEnd(self) }
    }

    func flush() {
        state.remove(.awaitsFlush)
        guard inFlight == 0, !state.contains(.isClosed) else { return }
        let hadBytes = pendingBytes > 0
        while hasNext() {
            let (taken, offered) = queue.withNext(scratch: loop.writeBuffer) { (offer($0), $0.count) }
            if taken < 0, taken != UV_EAGAIN.rawValue {
                return close(NetError(status: Int32(taken), "writing"))
            }
            passOn(max(0, taken))
            if taken < offered { return writeLater() }
        }
        guard !state.contains(.isClosed) else { return }
        if hadBytes { drained() } else if state.contains(.isFinishing) { shutDown() }
    }

    private func passOn(_ bytes: Int) {
        queue.consume(bytes)
        passed += bytes
    }

    /// How much of the bytes the kernel takes now, or libuv's number of an error. `send` spares what the kernel does
    /// for a `write`, which could as well be to a file.
    private func offer(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let descriptor else { return Int(UV_EBADF.rawValue) }
        loop.writes += 1
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        return count < 0 ? Int(-errno) : count
    }

    /// Whether there is something for the kernel.
    @inline(__always)
    private func hasNext() -> Bool {
        if let tls, !sealNext(tls) { return false }
        return queue.count > 0
    }

    private func drained() {
        if state.contains(.isFinishing) { shutDown() } else { handler?.drained() }
    }

    /// The kernel is full: libuv writes the next piece, from a copy, when it can.
    private func writeLater() {
        let request = queue.withNext(scratch: loop.writeBuffer) { bytes in
            let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(WriteQueue.chunkBytes))
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: piece.count, alignment: 1)
            copy.copyMemory(from: piece)
            return LateWrite(self, copy)
        }
        passOn(request.bytes.count)
        inFlight = Int32(request.bytes.count)
        request.start()
    }

    fileprivate func wroteLate(_ status: Int32) {
        inFlight = 0
        if status < 0 { return close(NetError(status: status, "writing")) }
        // A finished connection may still have to say that this was the last of it.
        if pendingBytes > 0 || state.contains(.isFinishing) { flush() } else { drained() }
    }

    private func shutDown() {
        guard !state.contains(.isShutDown) else { return }
        state.insert(.isShutDown)
        if state.contains(.hasEnded) { return close() }
        setDeadline(Self.linger)
        resumeReading()
        let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
        let status = uv_shutdown(request, stream) { request, _ in request!.deallocate() }
        if status != 0 {
            request.deallocate()
            close()
        }
    }

    // MARK: End

    override func deadlinePassed() {
        // Whether what is left of a finished connection is being read, its owner knows.
        if let handler, !state.contains(.isShutDown) { handler.deadlinePassed() } else { close() }
    }

    /// Closes at once; what is pending is lost. The handler's `closed` follows before this returns.
    func close() {
        close(nil)
    }

    /// The same for a peer that does not read: what the kernel still holds for it, which may be megabytes, is thrown
    /// away too.
    func reset() {
        state.insert(.isReset)
        close(nil)
    }

    func close(_ error: NetError?) {
        guard !state.contains(.isClosed) else { return }
        state.insert(.isClosed)
        clearDeadline()
        queue.removeAll()
        let closed: uv_close_cb = {
            let connection = Context.take($0!.pointee.data, as: TCPConnection.self)
            connection.handle.deallocate()
            // The wheel of deadlines may keep the connection for some seconds more.
            connection.tls = nil
        }
        // libuv resets none whose sending side is shut.
        if !state.contains(.isReset) || uv_tcp_close_reset(handle, closed) != 0 { uv_close(base(handle), closed) }
        let handler = handler
        self.handler = nil
        handler?.closed(error)
    }

    // MARK: Addresses

    /// The far end; nil once it is gone.
    var peer: SocketAddress? { greeting?.client ?? descriptor.flatMap { SocketAddress.of($0, getpeername) } }

    /// The near end; nil once it is gone.
    var local: SocketAddress? { descriptor.flatMap { SocketAddress.of($0, getsockname) } }

    var descriptor: Int32? {
        var descriptor: Int32 = -1
        guard !state.contains(.isClosed), uv_fileno(base(handle), &descriptor) == 0 else { return nil }
        return descriptor
    }

    var stream: UnsafeMutablePointer<uv_stream_t> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
    }

    fileprivate static func buffer(_ bytes: UnsafeRawBufferPointer) -> uv_buf_t {
        // libuv does not change what it writes.
        uv_buf_init(
            UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: CChar.self)),
            UInt32(clamping: bytes.count)
        )
    }
}

/// A piece of bytes that libuv writes when the socket can take it.
private final class LateWrite {
    let connection: TCPConnection
    let bytes: UnsafeMutableRawBufferPointer
    private let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)

    init(_ connection: TCPConnection, _ bytes: UnsafeMutableRawBufferPointer) {
        self.connection = connection
        self.bytes = bytes
    }

    deinit {
        request.deallocate()
        bytes.deallocate()
    }

    func start() {
        request.pointee.data = Context.pass(self)
        var buffer = TCPConnection.buffer(UnsafeRawBufferPointer(bytes))
        connection.loop.brokenPipes.begin()
        let status = uv_write(request, connection.stream, &buffer, 1) { request, status in
            let write = Context.take(request!.pointee.data, as: LateWrite.self)
            write.connection.loop.brokenPipes.end()
            write.connection.wroteLate(status)
        }
        if status != 0 {
            connection.loop.brokenPipes.end()
            _ = Context.take(request.pointee.data, as: LateWrite.self)
            connection.close(NetError(status: status, "writing"))
        }
    }
}
