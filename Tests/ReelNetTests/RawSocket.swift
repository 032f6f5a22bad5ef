import Foundation
import Testing

@testable import ReelNet

/// A plain blocking socket. Tests use it to send bytes that no correct client sends.
final class RawSocket: Sendable {
    private let descriptor: Int32

    /// Connects to the address.
    ///
    /// - Parameter receiveBytes: The size of the kernel's receive buffer; with nil the kernel chooses it.
    init(_ address: SocketAddress, receiveBytes: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let descriptor = descriptor
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        let status = address.withSockaddr { connect(descriptor, $0, $1) }
        guard status == 0 else { throw NetError(status: -errno, "connecting") }
        var timeout = timeval(tv_sec: 100, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ text: String) { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            sent += count
        }
    }

    /// Returns the next bytes; empty at the end of the connection.
    func receive(_ max: Int = 65536) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: max)
        let count = receive(into: &buffer)
        if count < 0, errno == EAGAIN { Issue.record("nothing came for 100 seconds") }
        return Array(buffer.prefix(Swift.max(0, count)))
    }

    /// Reads again after EINTR, since a signal that stops and continues the process does not end the connection.
    private func receive(into buffer: inout [UInt8]) -> Int {
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Reads until the other side ends, and returns the text.
    func receiveAll() -> String {
        var all: [UInt8] = []
        while case let part = receive(), !part.isEmpty { all += part }
        return String(decoding: all, as: UTF8.self)
    }

    /// Reads until the text has come, and returns everything that was read.
    func receive(until text: String) -> String {
        var all: [UInt8] = []
        while !String(decoding: all, as: UTF8.self).contains(text) {
            let part = receive()
            if part.isEmpty { break }
            all += part
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// Reads to the end of the connection. Returns true if it ended in order, and false after a reset.
    func endsInOrder() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = receive(into: &buffer)
            if count <= 0 { return count == 0 }
        }
    }

    /// Aborts the connection. The kernel answers later bytes with a reset.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Foundation.linger>.size))
        // The descriptor's number stays in use until the object is freed.
        let nothing = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        dup2(nothing, descriptor)
        close(nothing)
    }

    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }
}

/// A port on which no process listens, and which no other process can get meanwhile.
final class BoundSocket: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        let status = try SocketAddress("127.0.0.1", port: 0).withSockaddr { bind(descriptor, $0, $1) }
        guard status == 0, let address = SocketAddress.of(descriptor, getsockname) else {
            throw NetError(status: -errno, "binding")
        }
        port = address.port
    }

    deinit { close(descriptor) }
}
