import CLibuv
import Glibc

/// The events of a connection for its owner. All calls are on the loop; there is none after `closed`.
protocol TCPHandler: AnyObject {
    /// Called with bytes that have arrived; they are valid during the call only.
    func received(_ bytes: Span<UInt8>)
    /// Called when the peer sends no more. Written bytes still reach the peer.
    func ended()
    /// Called when the kernel has taken all bytes that were written.
    func drained()
    /// Called when the deadline of the connection has passed.
    func deadlinePassed()
    /// Called when the connection is gone; nil if this side closed it.
    func closed(_ error: NetError?)
    /// Called when the TLS handshake is done.
    func secured()
    /// Called when the peer has spoken without TLS although TLS is expected. Bytes that are written from now on go out
    /// plain.
    func spokeWithoutTLS()
}

extension TCPHandler {
    func secured() {}
    func spokeWithoutTLS() {}
}

/// A TCP connection on its loop. It lives until one of the sides closes it.
///
/// Writes are collected until the received bytes are handled, or otherwise until the end of the loop's round. Then they
/// are offered to the kernel in one call. `writeNow` is the exception. Bytes that the kernel does not take wait as they
/// are, and shared arrays stay shared; only the piece in front is copied for libuv. With TLS the bytes are sealed right
/// before they are offered, and opened right before the handler gets them.
///
/// There are tens of thousands of connections, so the order of the fields leaves no padding between them.
final class TCPConnection: Timed {
    /// The number of bytes that libuv writes at the moment: a piece of at most `WriteQueue.chunkBytes`.
    private var inFlight: Int32 = 0
    /// The owner. The connection keeps it until `closed`; it decides what a passed deadline means.
    var handler: (any TCPHandler)?
    let handle: UnsafeMutablePointer<uv_tcp_t>
    /// The number of bytes that have left the queue: written by the kernel, or given to libuv.
    private(set) var passed = 0
    /// The detector of a peer that reads too slowly.
    var pace = SlowReaderDetector()
    /// The bytes for the kernel, sealed if there is TLS.
    var queue = WriteQueue()
    private(set) var state: State = []
    /// The TLS session of the connection, if there is one.
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

    /// The time that a finished connection waits for the peer's end, so that the peer can read the last bytes.
    private static let linger = Duration.seconds(1)

    init(loop: EventLoop) {
        handle = .allocate(capacity: 1)
        super.init(on: loop)
        uv_tcp_init(loop.handle, handle)
        handle.pointee.data = Context.pass(self)
    }

    /// Takes over an accepted descriptor; it closes the descriptor if libuv refuses it.
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

    /// Starts or resumes reading.
    func resumeReading() {
        guard state.isDisjoint(with: [.isReading, .isClosed, .hasEnded]) else { return }
        state.insert(.isReading)
        uv_read_start(stream, Self.lendBuffer, Self.read)
    }

    /// Stops reading until `resumeReading`. The peer notices it when the kernel's buffers are full.
    func pauseReading() {
        guard state.contains(.isReading) else { return }
        state.remove(.isReading)
        uv_read_stop(stream)
    }

    /// All connections of the loop share one buffer, because the bytes are used before the next read.
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
        // The flush is done here, so that a round does not hold the responses to thousands of requests at once.
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

    /// Called when the peer sends no more and has said so.
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

    /// The number of bytes that were written and are not with the kernel yet: the memory that a slow reader costs.
    var pendingBytes: Int { queue.count + Int(inFlight) + (tls?.unsealed.count ?? 0) }

    /// True if no more bytes can be written.
    var isClosed: Bool { !state.isDisjoint(with: [.isClosed, .isFinishing]) }

    /// Queues bytes, which are written at the end of the loop's round at the latest. The array is shared, never copied,
    /// so that one array can go to many connections. Does nothing on a closed connection.
    func write(_ bytes: [UInt8]) {
        guard !isClosed else { return }
        if let tls { tls.unsealed.append(bytes) } else { queue.append(bytes) }
        awaitFlush()
    }

    /// Writes at once as many bytes as the kernel takes, and queues the rest as `write` does. If bytes wait already, it
    /// queues all of them. It calls no handler.
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

    /// Ends the connection in good order: writes the waiting bytes and shuts the sending side. Then it discards
    /// received bytes until the peer ends too, for one second at most.
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

    /// Returns the number of bytes that the kernel takes now, or a libuv error number. `send` saves work that the
    /// kernel does for a `write`, which could as well be to a file.
    private func offer(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let descriptor else { return Int(UV_EBADF.rawValue) }
        loop.writes += 1
        let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        return count < 0 ? Int(-errno) : count
    }

    /// True if there are bytes for the kernel.
    @inline(__always)
    private func hasNext() -> Bool {
        if let tls, !sealNext(tls) { return false }
        return queue.count > 0
    }

    private func drained() {
        if state.contains(.isFinishing) { shutDown() } else { handler?.drained() }
    }

    /// Gives the next piece to libuv because the kernel is full. libuv writes it, from a copy, when it can.
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
        // A finished connection may still have to send TLS's closure alert.
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
        // After the shutdown this is the linger deadline, so the connection closes. Before it, the owner decides
        // whether the peer still reads.
        if let handler, !state.contains(.isShutDown) { handler.deadlinePassed() } else { close() }
    }

    /// Closes the connection at once; pending bytes are lost. The handler's `closed` is called before this returns.
    func close() {
        close(nil)
    }

    /// Closes the connection of a peer that does not read. The bytes that the kernel still holds for the peer, which
    /// may be megabytes, are discarded too.
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
            // The deadline wheel may keep the connection for some more seconds.
            connection.tls = nil
        }
        // libuv cannot reset a connection after its sending side was shut.
        if !state.contains(.isReset) || uv_tcp_close_reset(handle, closed) != 0 { uv_close(base(handle), closed) }
        let handler = handler
        self.handler = nil
        handler?.closed(error)
    }

    // MARK: Addresses

    /// The address of the client that a proxy has named, or else of the remote end; nil once the connection is gone.
    var peer: SocketAddress? { greeting?.client ?? descriptor.flatMap { SocketAddress.of($0, getpeername) } }

    /// The local address; nil once the connection is gone.
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
