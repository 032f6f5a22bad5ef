import ReelCore
package import ReelNet

// The streams that a client may read, in a request about many streams. A gateway with keys reports them to a node
// without keys, which cannot check the token itself.

extension StreamPattern {
    /// The header of a forwarded request with the patterns of the streams that the client may read, joined by commas.
    package static let readableHeader = "reel-readable"

    /// Returns the patterns that a gateway reports; nil: none reports them. Throws 400 for a bad pattern.
    static func readable(_ head: HTTPRequestHead) throws(Problem) -> [StreamPattern]? {
        guard let text = head.headers[readableHeader] else { return nil }
        let patterns = text.split(separator: ",").map { StreamPattern(String($0)) }
        guard !patterns.contains(nil) else {
            throw Problem(.badRequest, "found a bad pattern in \(readableHeader), expected names and prefixes")
        }
        return patterns.compactMap(\.self)
    }
}

extension HTTPClientRequest {
    /// Reports the streams that the client may read; nil: the gateway has no keys.
    package mutating func report(readable: [StreamPattern]?) {
        guard let readable else { return }
        headers.add(StreamPattern.readableHeader, readable.map(\.description).joined(separator: ","))
    }
}

extension Access {
    /// Returns the streams that the client may read: those of its token, or those that a gateway has `reported`; nil:
    /// all streams. Throws 403 if there are none.
    package func readable(_ reported: [StreamPattern]?) throws(Problem) -> [StreamPattern]? {
        guard let patterns = grant?.read ?? reported else { return nil }
        guard !patterns.isEmpty else {
            throw refusal("the token gives no stream to read, expected the right `read` for some stream")
        }
        return patterns
    }
}
