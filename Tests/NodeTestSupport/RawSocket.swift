import Foundation
package import ReelNet
import TestSupport
import Testing

/// A plain blocking socket. Tests use it to send bytes that no correct client sends.
package final class RawSocket: Sendable {
    private let descriptor: Int32

    /// Connects to the address, which is one of IPv4.
    ///
    /// - Parameters:
    ///   - receiveBytes: The size of the kernel's receive buffer; with nil the kernel chooses it.
    ///   - segmentBytes: The maximum size of a TCP segment; with nil the kernel chooses it.
    package init(_ address: SocketAddress, receiveBytes: Int32? = nil, segmentBytes: Int32? = nil) throws {
        descriptor = streamSocket()
        if let receiveBytes { set(SOL_SOCKET, SO_RCVBUF, receiveBytes) }
        if let segmentBytes { set(Int32(IPPROTO_TCP), TCP_MAXSEG, segmentBytes) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = address.port.bigEndian
        name.sin_addr.s_addr = inet_addr(address.host)
        let descriptor = descriptor
        let status = withUnsafePointer(to: name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        set(SOL_SOCKET, SO_RCVTIMEO, timeval(tv_sec: 100, tv_usec: 0))
    }

    deinit { close(descriptor) }

    private func set<Value>(_ level: Int32, _ option: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) { setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) }
    }

    /// Sends the text. Returns false if the other side ended the connection before it took all of it.
    @discardableResult package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends the bytes. Returns false if the other side ended the connection before it took all of them.
    @discardableResult package func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    /// Returns the next bytes; empty at the end of the connection.
    package func receive(_ max: Int = 65536) -> [UInt8] {
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

    /// Reads until the other side ends, and returns the bytes.
    package func receiveAllBytes() -> [UInt8] {
        var all: [UInt8] = []
        while case let part = receive(), !part.isEmpty { all += part }
        return all
    }

    /// Reads until the other side ends, and returns the text.
    package func receiveAll() -> String { String(decoding: receiveAllBytes(), as: UTF8.self) }

    /// Reads until the text has come, and returns everything that was read.
    package func receive(until text: String) -> String {
        var all: [UInt8] = []
        while !String(decoding: all, as: UTF8.self).contains(text) {
            let part = receive()
            if part.isEmpty { break }
            all += part
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// Returns the text of the next `count` bytes; nil if the connection ends before.
    package func receive(exactly count: Int) -> String? {
        var all: [UInt8] = []
        while all.count < count {
            let part = receive(count - all.count)
            if part.isEmpty { return nil }
            all += part
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// True if bytes, or the end of the connection, can be read within `ms` milliseconds.
    package func isReadable(withinMs ms: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, ms) > 0
    }

    /// Reads to the end of the connection. Returns true if it ended in order, and false after a reset.
    package func endsInOrder() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = receive(into: &buffer)
            if count <= 0 { return count == 0 }
        }
    }

    /// Makes the next close of the socket reset the connection, as a machine that loses power does.
    package func breaksOff() { set(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }

    /// Aborts the connection. The kernel answers later bytes with a reset.
    package func reset() {
        breaksOff()
        // The descriptor's number stays in use until the object is freed.
        let nothing = streamSocket(AF_UNIX)
        dup2(nothing, descriptor)
        close(nothing)
    }

    /// Ends the sending side; the connection can still be read.
    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }
}
