/// The head of a request, after validation.
public struct HTTPRequestHead: Hashable, Sendable {
    /// The method: `GET`, `POST`, …
    public let method: String
    /// The path and the query as they were sent, still percent-encoded; `*` for OPTIONS of the whole server.
    public let target: String
    /// The host (and port) of the `Host` field; empty only in HTTP/1.0.
    public let host: String
    /// All header fields.
    public let headers: HTTPHeaders
    /// True for HTTP/1.0.
    public let isOld: Bool
    /// The client's address. It comes from trusted proxies if they name it. Nil if the client reset the connection
    /// before its first request was read.
    public internal(set) var client: SocketAddress?

    /// True if the connection may serve another request after this one.
    public var keepsAlive: Bool { !isOld && !headers.has("connection", token: "close") }

    /// Returns the `ETag` for a 304 if the client already holds the response with this one; nil: the client needs the
    /// response (RFC 9110, 13.1.2).
    ///
    /// The returned tag is the client's own form. It is weak if the response was packed, and a cache finds its entry by
    /// that form (RFC 9111, 4.3.4).
    public func held(etag: String) -> String? {
        let held = headers.tokens("if-none-match").first { $0 == "*" || $0 == etag || $0 == "W/" + etag }
        return held == "*" ? etag : held
    }

    /// The path, still percent-encoded.
    public var path: Substring { target[..<(mark ?? target.endIndex)] }

    /// The text after the first `?`; nil if there is no `?`.
    public var query: Substring? { mark.map { target[$0...].dropFirst() } }

    private var mark: String.Index? { target.utf8.firstIndex(of: UInt8(ascii: "?")) }

    /// The segments of the path. The path is split first and percent-decoded then: `/a/b%2Fc` has `a` and `b/c`. Nil if
    /// a percent sign is not followed by two hex digits, or the bytes are not UTF-8.
    public var segments: [String]? {
        var segments: [String] = []
        for part in path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let segment = Self.percentDecoded(Substring(part)) else { return nil }
            segments.append(segment)
        }
        return segments
    }

    /// The decoded parameters of the query, in order; nil for the same reasons as `segments`. A `+` is not decoded.
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

    /// Returns the text percent-encoded for a segment of a path or a value of a query.
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

/// A complete request.
public struct HTTPRequest: Hashable, Sendable {
    /// The head of the request.
    public let head: HTTPRequestHead
    /// The body after chunked decoding; empty if there was none.
    public let body: [UInt8]
}
