import CLibuv
import Glibc

/// A connection as the kernel gave it, before a loop serves it.
public struct AcceptedSocket: Sendable {
    let descriptor: Int32
}

/// A listener that accepts connections on one address. It passes each connection to a callback, which may give it to
/// any loop.
///
/// It calls `accept` through a poll handle of its own. When descriptors run out, it counts that and pauses for a
/// moment; libuv's own listener would take the connections and drop them.
final class TCPListener {
    /// The address on which it listens, with the real port.
    let address: SocketAddress

    private static let pause = Duration.milliseconds(100)
    private static let acceptsPerRound = 64

    private let loop: EventLoop
    private let descriptor: Int32
    private let lackedDescriptor: () -> Void
    private var accepted: ((AcceptedSocket) -> Void)?
    private var handle: UnsafeMutablePointer<uv_poll_t>?
    private var pauseTimer: LoopTimer?

    /// Starts to listen at once; port 0 takes a free port. On the loop.
    ///
    /// - Parameters:
    ///   - loop: The loop of the listener.
    ///   - address: The address and port.
    ///   - backlog: The number of connections that the kernel keeps until they are accepted.
    ///   - lackedDescriptor: Called when a connection waits and there is no descriptor left for it.
    ///   - accepted: Called with each connection.
    /// - Throws: `addressInUse`, `permissionDenied`, `badAddress` or `tooManyFiles`.
    init(
        on loop: EventLoop,
        address: SocketAddress,
        backlog: Int32 = 4_096,
        lackedDescriptor: @escaping () -> Void = {},
        accepted: @escaping (AcceptedSocket) -> Void
    ) throws(NetError) {
        loop.checkIsolated()
        self.loop = loop
        self.accepted = accepted
        self.lackedDescriptor = lackedDescriptor
        descriptor = try Self.listen(on: address, backlog)
        self.address = SocketAddress.of(descriptor, getsockname) ?? address
        let handle = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        uv_poll_init(loop.handle, handle, descriptor)
        handle.pointee.data = Context.pass(self)
        self.handle = handle
        poll()
    }

    /// The number of unsent bytes per connection up to which the kernel takes more. By default the kernel takes
    /// megabytes for each slow reader, and copies them in the loop's time.
    private static let unsentMax: Int32 = 128 << 10

    fileprivate static func listen(on address: SocketAddress, _ backlog: Int32) throws(NetError) -> Int32 {
        let family = address.withSockaddr { pointer, _ in Int32(pointer.pointee.sa_family) }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw NetError(status: -errno, "opening a socket for \(address)") }
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        // Accepted connections inherit both options.
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        var unsent = unsentMax
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, socklen_t(MemoryLayout<Int32>.size))
        let isListening =
            address.withSockaddr { bind(descriptor, $0, $1) == 0 } && Glibc.listen(descriptor, backlog) == 0
        guard isListening else {
            let error =
                errno == EADDRNOTAVAIL
                ? NetError(
                    .badAddress,
                    "listening on \(address): no interface of this machine has this address; expected is one that"
                        + " `ip address` lists, or 127.0.0.1, or 0.0.0.0 for all"
                )
                : NetError(status: -errno, "listening on \(address)")
            Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }

    private func poll() {
        guard let handle else { return }
        uv_poll_start(handle, Int32(UV_READABLE.rawValue)) { handle, _, _ in
            Context.borrow(handle!.pointee.data, as: TCPListener.self).accept()
        }
    }

    private func accept() {
        for _ in 0..<Self.acceptsPerRound where handle != nil {
            let socket = reel_accept(descriptor)
            if socket >= 0 {
                accepted?(AcceptedSocket(descriptor: socket))
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: pauseAccepting()
            default: break
            }
            return
        }
    }

    /// Stops accepting for `pause`. The waiting connections stay in the kernel's queue, and the loop serves other
    /// connections meanwhile.
    private func pauseAccepting() {
        guard let handle else { return }
        lackedDescriptor()
        uv_poll_stop(handle)
        pauseTimer = loop.timer(after: Self.pause) { [weak self] in self?.poll() }
    }

    /// Stops listening. On the loop.
    func close() {
        guard let handle else { return }
        self.handle = nil
        accepted = nil
        pauseTimer?.cancel()
        uv_poll_stop(handle)
        Glibc.close(descriptor)
        uv_close(base(handle)) {
            _ = Context.take($0!.pointee.data, as: TCPListener.self)
            UnsafeMutableRawPointer($0!).assumingMemoryBound(to: uv_poll_t.self).deallocate()
        }
    }
}

@available(*, unavailable)
extension TCPListener: Sendable {}

extension SocketAddress {
    /// Throws the error that listening on this address would throw now.
    public func checkThatItIsFree() throws(NetError) {
        Glibc.close(try TCPListener.listen(on: self, 1))
    }
}
