public import ReelCore
public import ReelNet

/// Why a request was not done, as `application/problem+json` says it.
public struct Problem: Error, Equatable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// The stable code.
    public var code: ErrorCode
    /// What was found and what was expected.
    public var detail: String
    /// The epoch that holds instead of the one given.
    public var epoch: Epoch?
    /// The first seq that can be read.
    public var first: Seq?
    /// The last seq that can be read.
    public var head: Seq?
    /// The limit that was passed.
    public var limit: Int?
    /// Milliseconds after which the same may be tried again.
    public var retryMs: Int64?
    /// The place of the bad event in its request.
    public var index: Int?
    /// The seq that the answer is about, such as a tombstone's.
    public var seq: Seq?
    /// With `node_behind`: the seq up to which the node has to process the log before it can answer. `seq` says how far
    /// it is.
    public var goal: Seq?
    /// The acks of events that are in the log all the same, as a JSON array.
    public var acks: [UInt8]?
    /// True if no event was ever published to the stream that the request is about.
    package var isUnpublished = false
    /// The subject of the token, for the operator's log. The answer does not contain it.
    package var subject: String?
    /// True if the page that asks may not use the node, whatever its token.
    package var isOfPage = false
    /// With 405: the methods that the path has.
    public var allow: [String] = []

    /// A problem of this code, with the code's own status unless another is given.
    public init(_ code: ErrorCode, _ detail: String, status: Int? = nil) {
        self.status = status ?? code.status
        self.code = code
        self.detail = detail
    }

    /// The same error, said over HTTP.
    public init(_ error: ReelError) {
        self.init(error.code, error.message)
        retryMs = error.retryMs
        index = error.index
    }

    /// What is no proper request, or comes when the node is full.
    public init(_ violation: HTTPViolation) {
        let code: ErrorCode =
            switch violation.status {
            case 413, 414, 431: .tooLarge
            case 503: .overloaded
            default: .badRequest
            }
        self.init(code, violation.detail, status: violation.status)
    }

    /// The JSON object.
    public var body: [UInt8] {
        var body = JSONObjectWriter()
        body.member("type", "urn:reel:error:" + code.rawValue)
        body.member("title", code.title)
        body.member("status", status)
        body.member("code", code.rawValue)
        body.member("detail", detail)
        body.member("epoch", epoch?.description)
        body.member("first", first)
        body.member("head", head)
        body.member("limit", limit)
        body.member("retry_ms", retryMs)
        body.member("index", index)
        body.member("seq", seq)
        body.member("goal", goal)
        body.member("acks", raw: acks)
        return body.finish()
    }

    /// The whole answer, with `Allow` and `Retry-After` where they belong.
    public var response: HTTPResponse {
        var headers: HTTPHeaders = ["content-type": "application/problem+json", "cache-control": "no-store"]
        if !allow.isEmpty { headers.add("allow", allow.joined(separator: ", ")) }
        if isUnpublished { headers.add(UnpublishedStream.header, UnpublishedStream.value) }
        if status == 401 { headers.add("www-authenticate", "Bearer") }
        if let retryMs {
            headers.add("retry-after", String(max(1, (retryMs + 999) / 1_000)))
        } else if status == 503 {
            headers.add("retry-after", "1")
        }
        return HTTPResponse(status: status, headers: headers, body: body)
    }
}
