/// The head of a request, checked.
public struct HTTPRequestHead: Hashable, Sendable {
    /// `GET`, `POST`, …
    public let method: String
    /// Path and query as they were sent, percent signs and all; `*` for OPTIONS of the whole server.
    public let target: String
    /// The host (and port) that the client means; empty only in HTTP/1.0.
    public let host: String
    /// All header fields.
    public let headers: HTTPHeaders
    /// HTTP/1.0.
    public let isOld: Bool
    /// The address of the client, as far as trusted proxies say so; nil: it reset the connection before its first
    /// request was read.
    public internal(set) var client: SocketAddress?

    /// Whether the connection may serve another request behind this one.
    public var keepsAlive: Bool { !isOld && !headers.has("connection", token: "close") }

    /// The `ETag` under which the client holds the answer with this one (RFC 9110, 13.1.2): a 304 with it is all that
    /// it needs. It is weak where the answer was packed, and a cache looks for what it holds by that (RFC 9111, 4.3.4).
    /// Nil: the client needs the answer.
    public func held(etag: String) -> String? {
        let held = headers.tokens("if-none-match").first { $0 == "*" || $0 == etag || $0 == "W/" + etag }
        return held == "*" ? etag : held
    }

    /// The path, percent signs and all.
    public var path: Substring { target[..<(mark ?? target.endIndex)] }

    /// What stands behind the first `?`; nil without one.
    public var query: Substring? { mark.map { target[$0...].dropFirst() } }

    private var mark: String.Index? { target.utf8.firstIndex(of: UInt8(ascii: "?")) }

    /// The segments of the path, split first and percent-decoded then: `/a/b%2Fc` has `a` and `b/c`. Nil if a percent
    /// sign is not followed by two hex digits, or the bytes are no UTF-8.
    public var segments: [String]? {
        var segments: [String] = []
        for part in path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let segment = Self.percentDecoded(Substring(part)) else { return nil }
            segments.append(segment)
        }
        return segments
    }

    /// The parameters of the query in their order, decoded; nil as for `segments`. `+` stands for itself.
    public var parameters: [(name: String, value: String)]? {
        var parameters: [(name: String, value: String)] = []
        for part in (query ?? "").split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.percentDecoded(pair[0]),
                let value = Self.percentDecoded(pair.count == 2 ? pair[1] : "")
            else { return nil }
            parameters.append((name, value))
        }
        return parameters
    }

    /// A text as a segment of a path or a value of a query can hold it.
    public static func percentEncoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { encoded, byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                encoded += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    private static func percentDecoded(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(HTTPCharacters.hex),
                let low = rest.popFirst().flatMap(HTTPCharacters.hex)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// A whole request.
public struct HTTPRequest: Hashable, Sendable {
    /// Its head.
    public let head: HTTPRequestHead
    /// Its body, unchunked; empty if there was none.
    public let body: [UInt8]
}
