internal import Foundation

/// The address of a node: `http://HOST:PORT` or `https://HOST:PORT`. The default ports are 80 and 443, and `HOST:PORT`
/// alone means `http`. It accepts the same texts as `NetTransport`.
struct NodeAddress: Equatable, Sendable {
    let isSecure: Bool
    /// `HOST:PORT`, with an IPv6 address in brackets.
    let authority: String

    /// Parses the address. Returns nil for any other text.
    init?(_ text: String) {
        var rest = text[...]
        var isSecure = false
        let scheme = text.firstRange(of: "://")
        if let scheme {
            switch text[..<scheme.lowerBound] {
            case "http": break
            case "https": isSecure = true
            default: return nil
            }
            rest = text[scheme.upperBound...]
        }
        if rest.hasSuffix("/") { rest.removeLast() }
        guard rest.utf8.allSatisfy(Self.belongsToAuthority) else { return nil }
        var (host, digits) = (rest, isSecure ? "443" : "80")
        if !rest.hasSuffix("]"), let colon = rest.lastIndex(of: ":") {
            (host, digits) = (rest[..<colon], String(rest[rest.index(after: colon)...]))
        } else if scheme == nil {
            return nil
        }
        // The parser of integers accepts a sign too, but a sign belongs to no authority.
        guard let port = UInt16(digits), port > 0, !host.isEmpty else { return nil }
        if host.contains(":"), !(host.hasPrefix("[") && host.hasSuffix("]")) { return nil }
        if host.hasPrefix("["), host.count <= 2 { return nil }
        self.isSecure = isSecure
        authority = "\(host):\(port)"
    }

    /// Returns the URL of a target on the node, or nil if the target is no path with a query.
    func url(_ target: String, isSocket: Bool = false) -> URL? {
        guard target.hasPrefix("/") else { return nil }
        let scheme = isSocket ? "ws" : "http"
        return URL(string: "\(scheme)\(isSecure ? "s" : "")://\(authority)\(target)")
    }

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
