/// Every code that Reel says to anybody, once. What belongs to each stands in `entry`; docs/reference/errors.md is made
/// of it.
public enum ErrorCode: String, CaseIterable, Sendable {
    // What is wrong with a request.
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
    // What keeps a node from answering.
    case rateLimited = "rate_limited"
    case overloaded
    case logUnavailable = "log_unavailable"
    case nodeBehind = "node_behind"
    case `internal`
    case damaged
    // A position that does not fit the log.
    case epochChanged = "epoch_changed"
    case truncated
    case aheadOfLog = "ahead_of_log"
    case diverged
    // What keeps a device's store from being used.
    case storeBusy = "store_busy"
    case storeFull = "store_full"
    case storeFailed = "store_failed"
    case storeFormat = "store_format"
    case storeDamaged = "store_damaged"
    case storeLost = "store_lost"
    case storeUser = "store_user"
    case storeWaits = "store_waits"
    // What an app asks of a client that cannot be.
    case badAddress = "bad_address"
    case closed
    // What becomes of an event.
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
    // What a device says of itself; no node sends these.
    case offline
    case noToken = "no_token"
    case wrongDeployment = "wrong_deployment"
    case newerLog = "newer_log"
}
