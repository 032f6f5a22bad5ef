/// Every code that Reel says to anybody, once. docs/errors.md is made from this table.
public enum ErrorCode: String, CaseIterable, Sendable {
    case badJSON = "bad_json"
    case badFrame = "bad_frame"
    case badEvent = "bad_event"
    case badStream = "bad_stream"
    case badRange = "bad_range"
    case badNumber = "bad_number"
    case badBase = "bad_base"
    case badRequest = "bad_request"
    case tooLarge = "too_large"
    case limit
    case unauthorized
    case forbidden
    case notFound = "not_found"
    case methodNotAllowed = "method_not_allowed"
    case rateLimited = "rate_limited"
    case overloaded
    case logUnavailable = "log_unavailable"
    case epochChanged = "epoch_changed"
    case truncated
    case nodeBehind = "node_behind"
    case aheadOfLog = "ahead_of_log"
    case diverged
    case conflict
    case gap
    case stale
    case tooManySites = "too_many_sites"
    case foreign
    case duplicate
    case deleted
    case noObject = "no_object"
    case `guard`
    case type
    case range
    case `internal`
}
