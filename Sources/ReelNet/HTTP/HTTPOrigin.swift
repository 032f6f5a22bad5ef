/// The address of a server and whether it uses TLS: `https://reel.example`, `http://127.0.0.1:7350`.
public struct HTTPOrigin: Hashable, Sendable, CustomStringConvertible {
    /// True if the server uses TLS.
    public let isSecure: Bool
    /// The name or address, without brackets.
    public let host: String
    /// The port. For a URL without a port it is 443 or 80.
    public let port: UInt16

    /// Parses a URL without a path, or `HOST:PORT` for `http`. A text without both scheme and port is refused, because
    /// it may be the name of anything. Returns nil for any other text.
    public init?(_ url: String) {
        var rest = url[...]
        var isSecure = false
        let scheme = url.firstRange(of: "://")
        if let scheme {
            switch url[..<scheme.lowerBound] {
            case "http": break
            case "https": isSecure = true
            default: return nil
            }
            rest = url[scheme.upperBound...]
        }
        if rest.hasSuffix("/") { rest.removeLast() }
        guard !rest.isEmpty, rest.utf8.allSatisfy(Self.belongsToAuthority) else { return nil }
        let hasPort = rest.hasSuffix("]") ? false : rest.contains(":")
        guard hasPort || scheme != nil else { return nil }
        guard let (host, port) = SocketAddress.split(hasPort ? String(rest) : "\(rest):\(isSecure ? 443 : 80)"),
            !host.isEmpty
        else { return nil }
        self.isSecure = isSecure
        self.host = host
        self.port = port
    }

    /// The URL, always with its port.
    public var description: String { (isSecure ? "https://" : "http://") + authority }

    /// The text `HOST:PORT`, with an IPv6 address in brackets.
    public var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }

    private static func belongsToAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }
}
