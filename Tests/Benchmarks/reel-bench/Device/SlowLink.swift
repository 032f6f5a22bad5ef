import Foundation
import Synchronization

/// A TCP relay in front of a node of this machine, which passes on what the node sends at a limited rate.
final class SlowLink: Sendable {
    /// The bytes that the relay accepts from the node before it has passed them on. Like a modem's buffer, it is small.
    private static let receiveBytes: Int32 = 4_096
    private static let pieceBytes = 1_024

    private let listener: Int32
    private let nodePort: UInt16
    private let port: UInt16
    private let bytesPerSecond: Int
    private let descriptors: Mutex<[Int32]>

    /// Starts a relay on a free port.
    ///
    /// - Parameters:
    ///   - nodePort: the port of the node.
    ///   - bytesPerSecond: the rate at which a connection passes on what the node sends.
    init(to nodePort: UInt16, bytesPerSecond: Int) throws {
        (self.nodePort, self.bytesPerSecond) = (nodePort, bytesPerSecond)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var (address, size) = (Self.loopback(0), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isBound = Self.with(&address) { bind(listener, $0, size) } == 0 && listen(listener, 16) == 0
        guard isBound, Self.with(&address, { getsockname(listener, $0, &size) }) == 0 else {
            throw BenchmarkError("cannot listen: \(String(cString: strerror(errno)))")
        }
        port = UInt16(bigEndian: address.sin_port)
        descriptors = Mutex([listener])
        Thread.detachNewThread { self.accept() }
    }

    /// The address of the relay.
    var url: String { "http://127.0.0.1:\(port)" }

    /// Ends the relay and its connections.
    func end() {
        descriptors.withLock { for descriptor in $0 { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            let node = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var size = Self.receiveBytes
            setsockopt(node, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            var address = Self.loopback(nodePort)
            let isConnected = Self.with(&address) { connect(node, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) } == 0
            guard isConnected else { return }
            descriptors.withLock { $0 += [client, node] }
            Thread.detachNewThread { Self.relay(from: client, to: node, bytesPerSecond: .max) }
            Thread.detachNewThread { [bytesPerSecond] in
                Self.relay(from: node, to: client, bytesPerSecond: bytesPerSecond)
            }
        }
    }

    private static func relay(from source: Int32, to target: Int32, bytesPerSecond: Int) {
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        var due = ContinuousClock.now
        while true {
            let count = read(source, &piece, piece.count)
            guard count > 0, send(target, piece, count, Int32(MSG_NOSIGNAL)) == count else { break }
            due = max(due, .now) + .nanoseconds(1_000_000_000 / bytesPerSecond * count)
            let wait = (due - ContinuousClock.now) / .microseconds(1)
            if wait > 0 { usleep(UInt32(wait)) }
        }
        for descriptor in [source, target] { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func with<R>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> R) -> R {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
