import Foundation
import TestSupport

/// A client that sends whatever a test needs: bytes on a TCP connection, and WebSocket frames built by hand.
final class RawClient {
    private let descriptor: Int32
    private var unread: [UInt8] = []
    private(set) var hasEnded = false

    /// A WebSocket frame from the server.
    enum Frame: Equatable {
        case text(String)
        case close(Int)
        case other(UInt8)
        /// The connection ended without a close frame.
        case end
    }

    /// Connects to `127.0.0.1:PORT`.
    init(port: UInt16) throws {
        descriptor = streamSocket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let descriptor = descriptor
        let status = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw NeverCame(description: "connecting: \(String(cString: strerror(errno)))") }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit { close(descriptor) }

    /// Returns an open socket of the protocol. Unless `hello` is false, it has sent `hello` and got `welcome`.
    static func socket(port: UInt16, hello: Bool = true) async throws -> RawClient {
        let client = try RawClient(port: port)
        try await client.send(
            """
            GET /v1/socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Protocol: reel.v1\r\n\r\n
            """
        )
        let answer = try await client.receive(until: "\r\n\r\n")
        guard answer.hasPrefix("HTTP/1.1 101 ") else { throw NeverCame(description: "an upgrade: \(answer)") }
        if hello {
            try await client.say(#"{"t":"hello","client":"raw/1"}"#)
            _ = try await client.hear("welcome")
        }
        return client
    }

    // MARK: Bytes

    func send(_ text: String) async throws {
        try await send(Array(text.utf8))
    }

    /// Sends the bytes that the server accepts, and drops the rest after the server has closed.
    func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try await eventually("room to send \(rest.count) bytes") {
                    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    return poll(&room, 1, 0) != 0
                }
            } else {
                return
            }
        }
    }

    /// Waits until more bytes have come, or the end. Throws if neither comes in time.
    private func fill(_ seconds: Int) async throws {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        try await eventually("more from the server, behind \(unread.count) bytes", seconds: seconds) {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { unread += buffer.prefix(count) }
            if count == 0 || count < 0 && errno != EAGAIN { hasEnded = true }
            return count > 0 || hasEnded
        }
    }

    /// Returns the bytes up to and including this text, or up to the end.
    func receive(until text: String, seconds: Int = 100) async throws -> String {
        while true {
            if let range = unread.firstRange(of: Array(text.utf8)) {
                defer { unread.removeSubrange(..<range.upperBound) }
                return String(decoding: unread[..<range.upperBound], as: UTF8.self)
            }
            if hasEnded {
                defer { unread = [] }
                return String(decoding: unread, as: UTF8.self)
            }
            try await fill(seconds)
        }
    }

    /// Returns all bytes until the server ends the connection.
    func receiveAll(seconds: Int = 100) async throws -> String {
        while !hasEnded { try await fill(seconds) }
        return try await receive(until: "\0\0\0")
    }

    // MARK: Frames

    /// Sends a text frame, with the mask that a client must use.
    func say(_ text: String) async throws {
        try await send(Self.frame(0x81, Array(text.utf8)))
    }

    /// Returns a frame with this first byte.
    static func frame(_ first: UInt8, _ payload: [UInt8], isMasked: Bool = true) -> [UInt8] {
        var frame = [first]
        let mark: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case 0..<126: frame.append(mark | UInt8(payload.count))
        case 126..<65_536: frame += [mark | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default: frame += [mark | 127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        guard isMasked else { return frame + payload }
        let mask: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]
        return frame + mask + payload.enumerated().map { $0.element ^ mask[$0.offset & 3] }
    }

    /// Returns the next frame.
    func frame(seconds: Int = 100) async throws -> Frame {
        while true {
            if let (first, payload) = takeFrame() {
                switch first {
                case 0x81: return .text(String(decoding: payload, as: UTF8.self))
                case 0x89:
                    try await send(Self.frame(0x8a, payload))
                    continue
                case 0x88: return .close(payload.count < 2 ? 1005 : Int(payload[0]) << 8 | Int(payload[1]))
                default: return .other(first)
                }
            }
            if hasEnded { return .end }
            try await fill(seconds)
        }
    }

    private func takeFrame() -> (UInt8, [UInt8])? {
        guard unread.count >= 2 else { return nil }
        var (start, length) = (2, Int(unread[1]))
        if length == 126 || length == 127 {
            start += length == 126 ? 2 : 8
            guard unread.count >= start else { return nil }
            length = unread[2..<start].reduce(0) { $0 << 8 | Int($1) }
        }
        guard unread.count >= start + length else { return nil }
        defer { unread.removeSubrange(..<(start + length)) }
        return (unread[0], Array(unread[start..<(start + length)]))
    }

    /// Returns the members of the next message of this kind, and skips others.
    func hear(_ kind: String, seconds: Int = 100) async throws -> [String: Any] {
        try await hear([kind], seconds: seconds)
    }

    /// Returns the members of the next message of one of these kinds.
    func hear(_ kinds: [String], seconds: Int = 100) async throws -> [String: Any] {
        while true {
            let frame = try await frame(seconds: seconds)
            guard case .text(let text) = frame else {
                if case .other = frame { continue }
                throw NeverCame(description: "a frame of \(kinds): \(frame)")
            }
            let members = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
            if let kind = members["t"] as? String, kinds.contains(kind) { return members }
        }
    }

    /// Returns the code of the close frame and answers with the same code. Skips messages before it.
    func closeCode(seconds: Int = 100) async throws -> Int? {
        while true {
            switch try await frame(seconds: seconds) {
            case .close(let code):
                try await send(Self.frame(0x88, [UInt8(code >> 8 & 0xff), UInt8(code & 0xff)]))
                shutdown(descriptor, Int32(SHUT_WR))
                return code
            case .end: return nil
            default: continue
            }
        }
    }
}
