import CLibuv
import Glibc

/// An IPv4 or IPv6 address and a port.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address as text, without brackets: `127.0.0.1`, `::1`.
    public let host: String
    /// The port, 0 for any free one.
    public let port: UInt16

    /// An address in numbers; no name is looked up. `localhost` and `*` are known.
    public init(_ host: String, port: UInt16) throws(NetError) {
        let numeric =
            switch host {
            case "localhost": "127.0.0.1"
            case "*": "0.0.0.0"
            default: host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            }
        guard Self.isNumeric(numeric) else {
            throw NetError(.badAddress, "\(host) is no IPv4 or IPv6 address")
        }
        self.host = numeric
        self.port = port
    }

    /// From `HOST:PORT`, `[::1]:7350` for IPv6.
    public init(parsing text: String) throws(NetError) {
        guard let (host, port) = Self.split(text) else {
            throw NetError(.badAddress, "\(text) is not HOST:PORT with a port from 0 to 65535")
        }
        try self.init(host, port: port)
    }

    /// Splits `HOST:PORT` without looking at the host; nil if there is no port from 0 to 65535.
    public static func split(_ text: String) -> (host: String, port: UInt16)? {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        let host = text[..<colon]
        guard !host.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(digits) else {
            return nil
        }
        if host.contains(":"), !(host.hasPrefix("[") && host.hasSuffix("]")) { return nil }
        return (host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host), port)
    }

    /// Whether only this machine reaches it: 127.0.0.0/8 and ::1.
    public var isLoopback: Bool {
        var bytes = in6_addr()
        if inet_pton(AF_INET, host, &bytes) == 1 { return withUnsafeBytes(of: bytes) { $0[0] == 127 } }
        guard inet_pton(AF_INET6, host, &bytes) == 1 else { return false }
        return withUnsafeBytes(of: bytes) { bytes in
            guard bytes[..<10].allSatisfy({ $0 == 0 }) else { return false }
            let isMapped = bytes[10] == 0xff && bytes[11] == 0xff
            return isMapped ? bytes[12] == 127 : bytes[10..<15].allSatisfy { $0 == 0 } && bytes[15] == 1
        }
    }

    /// True for 0.0.0.0 and ::, also mapped: no client has such an address.
    public var isUnspecified: Bool {
        var bytes = in6_addr()
        if inet_pton(AF_INET, host, &bytes) == 1 {
            return withUnsafeBytes(of: bytes) { $0[..<4].allSatisfy { $0 == 0 } }
        }
        guard inet_pton(AF_INET6, host, &bytes) == 1 else { return false }
        return withUnsafeBytes(of: bytes) { $0[..<10].allSatisfy { $0 == 0 } && $0[12...].allSatisfy { $0 == 0 } }
    }

    /// Where connections come from: the whole of an IPv4 address, the first 64 bits of an IPv6 one.
    public var origin: UInt64 {
        var (short, long) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, host, &short) == 1 { return UInt64(short.s_addr) }
        guard inet_pton(AF_INET6, host, &long) == 1 else { return 0 }
        return withUnsafeBytes(of: long) { bytes in
            let isIPv4 = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xff && bytes[11] == 0xff
            return isIPv4
                ? UInt64(bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
                : bytes.loadUnaligned(as: UInt64.self)
        }
    }

    /// `127.0.0.1:7350`, `[::1]:7350`.
    public var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Whether the text is an address in numbers.
    static func isNumeric(_ host: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
    }

    /// From the system's form; nil for a family that is neither IPv4 nor IPv6.
    init?(_ storage: UnsafePointer<sockaddr>) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        guard uv_ip_name(storage, &text, text.count) == 0 else { return nil }
        host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        port = UnsafeRawPointer(storage).load(fromByteOffset: 2, as: UInt16.self).bigEndian
    }

    /// From 4 or 16 bytes.
    init?(bytes: [UInt8], port: UInt16) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil
        else { return nil }
        host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.port = port
    }

    /// Lends the system's form.
    func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var v4 = sockaddr_in()
        if uv_ip4_addr(host, Int32(port), &v4) == 0 {
            return withUnsafePointer(to: &v4) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var v6 = sockaddr_in6()
        _ = uv_ip6_addr(host, Int32(port), &v6)
        return withUnsafePointer(to: &v6) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    }

    /// The near or far end of a socket.
    static func of(
        _ descriptor: Int32,
        _ name: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                name(descriptor, $0, &length) == 0 ? SocketAddress($0) : nil
            }
        }
    }
}
