public import ReelCore
public import ReelNet

/// The error of a request, for a response of type `application/problem+json`.
public struct Problem: Error, Equatable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// The stable error code.
    public var code: ErrorCode
    /// The finding and the expectation.
    public var detail: String
    /// The epoch that is valid instead of the given one.
    public var epoch: Epoch?
    /// The first seq that can be read.
    public var first: Seq?
    /// The last seq that can be read.
    public var head: Seq?
    /// The limit that was exceeded.
    public var limit: Int?
    /// The time after which the client may retry, in milliseconds.
    public var retryMs: Int64?
    /// The index of the bad event in its request.
    public var index: Int?
    /// The seq that the problem is about, such as that of a tombstone.
    public var seq: Seq?
    /// With `node_behind`: the seq up to which the node must process the log before it can answer. `seq` is the seq
    /// that it has reached.
    public var goal: Seq?
    /// The acks of the events that are in the log nevertheless, as a JSON array.
    public var acks: [UInt8]?
    /// True if no event was ever published to the stream of the request.
    package var isUnpublished = false
    /// The subject of the token, for the operator's log lines. The response does not contain it.
    package var subject: String?
    /// True if the page that sent the request may not use the node, with any token.
    package var isOfPage = false
    /// With 405: the methods that the path has.
    public var allow: [String] = []

    /// A problem with a code. `status` is the HTTP status; nil: the default of the code.
    public init(_ code: ErrorCode, _ detail: String, status: Int? = nil) {
        self.status = status ?? code.status
        self.code = code
        self.detail = detail
    }

    /// The HTTP form of an error.
    public init(_ error: ReelError) {
        self.init(error.code, error.message)
        retryMs = error.retryMs
        index = error.index
    }

    /// The problem of a request that is not valid HTTP or exceeds a limit of the server.
    public init(_ violation: HTTPViolation) {
        let code: ErrorCode =
            switch violation.status {
            case 413, 414, 431: .tooLarge
            case 503: .overloaded
            default: .badRequest
            }
        self.init(code, violation.detail, status: violation.status)
    }

    /// The body: a JSON object.
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

    /// The whole response, with the headers `Allow` and `Retry-After` if they apply.
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
