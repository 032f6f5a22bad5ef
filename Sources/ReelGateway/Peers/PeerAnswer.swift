import ReelCore
import ReelNet
import ReelNode

/// The head of a snapshot node's answer to a forwarded question, as the client gets it.
///
/// The node list says which nodes there are, and a writer of that list can name any server. But the client reads the
/// answer from the gateway's own origin. The gateway therefore accepts only what a snapshot node sends, and itself sets
/// all fields that browsers and caches act on.
struct PeerAnswer {
    /// The fault of an answer. Its node counts as failed.
    struct Fault: Error, Equatable {
        var detail: String
    }

    /// The status: 200, 304, or that of a refusal.
    let status: Int
    /// The fields that the client gets.
    let headers: HTTPHeaders
    /// The length that the node has announced; nil: it has announced none.
    let length: Int?
    /// The largest body that the gateway passes on.
    let bytesMax: Int

    /// True for an answer after which another node is asked. The node cannot answer now, it may have met a loss, or it
    /// does not accept a token that this gateway has accepted.
    var isRefusal: Bool { [401, 403, 409, 503].contains(status) }

    /// The statuses of refusals that a snapshot node sends to a gateway.
    static let refusals: Set<Int> = [400, 401, 403, 404, 409, 410, 413, 414, 429, 431, 500, 503]
    /// The largest body of a refusal.
    private static let refusalBytesMax = 64 << 10
    /// The largest `Retry-After` in seconds that the gateway passes on.
    private static let retrySMax = 3_600

    /// Reads the head of an answer to a client's question. Throws if a snapshot node does not answer like this.
    init(_ head: HTTPResponseHead, to question: any ProxiedRequest, of client: HTTPRequestHead) throws(Fault) {
        status = head.status
        let isPacked: Bool
        (isPacked, length) = (try Self.isPacked(head, question, client), Self.length(head))
        var headers = HTTPHeaders()
        switch head.status {
        case 200:
            bytesMax = question.answerBytesMax
            let type = try Self.type(head, ["application/x-ndjson", "application/json"])
            headers.add("content-type", type)
            headers.add("cache-control", type == "application/json" ? "no-store" : "no-cache")
            if isPacked {
                headers.add("content-encoding", "gzip")
                headers.add("vary", "accept-encoding")
            }
            if question.preamble.isEmpty, let etag = head.headers["etag"], Self.isETag(etag) {
                headers.add("etag", etag)
            }
        case 304:
            bytesMax = 0
            // The client holds the answer under this tag only if it has named the tag.
            guard question.preamble.isEmpty, let etag = head.headers["etag"], Self.isETag(etag),
                client.held(etag: etag) != nil
            else { throw Fault(detail: "status 304 without an etag that the client holds") }
            headers.add("etag", etag)
            headers.add("cache-control", "no-cache")
        case let status where Self.refusals.contains(status):
            bytesMax = Self.refusalBytesMax
            headers.add("content-type", try Self.type(head, ["application/problem+json"]))
            headers.add("cache-control", "no-store")
            if status == 401 { headers.add("www-authenticate", "Bearer") }
            if let wait = head.headers["retry-after"].flatMap({ Int($0) }), (1...Self.retrySMax).contains(wait) {
                headers.add("retry-after", "\(wait)")
            }
            if isPacked {
                headers.add("content-encoding", "gzip")
                headers.add("vary", "accept-encoding")
            }
        default: throw Fault(detail: "status \(head.status), which no snapshot node sends")
        }
        if UnpublishedStream.isSaid(in: head.headers) {
            headers.add(UnpublishedStream.header, UnpublishedStream.value)
        }
        self.headers = headers
        if let length, length > bytesMax {
            throw Fault(detail: "a body of \(length) bytes, at most \(bytesMax) are taken")
        }
    }

    /// Returns the media type if it is one of the known ones; throws if it is not.
    private static func type(_ head: HTTPResponseHead, _ known: [String]) throws(Fault) -> String {
        let types = head.headers.all("content-type")
        guard types.count == 1, let type = known.first(where: { $0 == types[0].lowercased() }) else {
            throw Fault(detail: "status \(head.status) with a content type that no snapshot node sends")
        }
        return type
    }

    /// True if the body is compressed by gzip, which the client must have asked for.
    private static func isPacked(
        _ head: HTTPResponseHead,
        _ question: any ProxiedRequest,
        _ client: HTTPRequestHead
    ) throws(Fault) -> Bool {
        let codings = head.headers.all("content-encoding")
        if codings.isEmpty { return false }
        guard codings.count == 1, codings[0].lowercased() == "gzip", question.preamble.isEmpty, client.acceptsGzip
        else {
            throw Fault(detail: "a content encoding that was not asked for")
        }
        return true
    }

    /// Returns the announced length, also in the answer to HEAD, where no other code has checked it.
    private static func length(_ head: HTTPResponseHead) -> Int? {
        guard let text = head.headers["content-length"], text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int(text)
    }

    /// True for `"EPOCH:SEQ"`, also as a weak tag.
    private static func isETag(_ text: String) -> Bool {
        text.wholeMatch(of: /(W\/)?"[0-9a-f]{16}:-?[0-9]{1,16}"/) != nil
    }
}
