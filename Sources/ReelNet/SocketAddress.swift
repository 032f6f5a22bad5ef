import CLibuv
import Glibc

/// An IPv4 or IPv6 address and a port.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address as text, without brackets: `127.0.0.1`, `::1`.
    public let host: String
    /// The port; 0 stands for any free port.
    public let port: UInt16

    /// Creates an address from its numeric form. It looks up no name, but accepts `localhost` and `*` (all IPv4
    /// interfaces).
    ///
    /// - Throws: `badAddress` if `host` is not an IPv4 or IPv6 address.
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

    /// Parses `HOST:PORT`; an IPv6 address is in brackets, as in `[::1]:7350`.
    ///
    /// - Throws: `badAddress` for any other text.
    public init(parsing text: String) throws(NetError) {
        guard let (host, port) = Self.split(text) else {
            throw NetError(.badAddress, "\(text) is not HOST:PORT with a port from 0 to 65535")
        }
        try self.init(host, port: port)
    }

    /// Splits `HOST:PORT` without a check of the host. Returns nil if there is no port from 0 to 65535.
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

    /// True if only this machine reaches the address: 127.0.0.0/8 (also mapped to IPv6) and ::1.
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

    /// True for 0.0.0.0 and ::, also in mapped form. No client has such an address.
    public var isUnspecified: Bool {
        var bytes = in6_addr()
        if inet_pton(AF_INET, host, &bytes) == 1 {
            return withUnsafeBytes(of: bytes) { $0[..<4].allSatisfy { $0 == 0 } }
        }
        guard inet_pton(AF_INET6, host, &bytes) == 1 else { return false }
        return withUnsafeBytes(of: bytes) { $0[..<10].allSatisfy { $0 == 0 } && $0[12...].allSatisfy { $0 == 0 } }
    }

    /// The number under which connections from this address are counted. It holds the whole of an IPv4 address, or the
    /// first 64 bits of an IPv6 address.
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

    /// The text `127.0.0.1:7350` or `[::1]:7350`.
    public var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// True if the text is an address in numeric form.
    static func isNumeric(_ host: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
    }

    /// Creates an address from the system's form. Returns nil for a family that is neither IPv4 nor IPv6.
    init?(_ storage: UnsafePointer<sockaddr>) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        guard uv_ip_name(storage, &text, text.count) == 0 else { return nil }
        host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        port = UnsafeRawPointer(storage).load(fromByteOffset: 2, as: UInt16.self).bigEndian
    }

    /// Creates an address from 4 (IPv4) or 16 (IPv6) bytes. Returns nil for any other count.
    init?(bytes: [UInt8], port: UInt16) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil
        else { return nil }
        host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.port = port
    }

    /// Calls `body` with the system's form of the address and its size in bytes. The pointer is valid during the call
    /// only.
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

    /// Returns the local or remote address of a socket: `name` is `getsockname` or `getpeername`. Returns nil if the
    /// call fails.
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
