/// All error codes of Reel. `entry` holds the properties of each; docs/reference/errors.md is generated from them.
public enum ErrorCode: String, CaseIterable, Codable, Sendable {
    // The request is wrong.
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
    // The node cannot answer.
    case rateLimited = "rate_limited"
    case overloaded
    case logUnavailable = "log_unavailable"
    case nodeBehind = "node_behind"
    case `internal`
    case damaged
    // The position does not fit the log.
    case epochChanged = "epoch_changed"
    case truncated
    case aheadOfLog = "ahead_of_log"
    case diverged
    // The device's store cannot be used.
    case storeBusy = "store_busy"
    case storeFull = "store_full"
    case storeFailed = "store_failed"
    case storeFormat = "store_format"
    case storeDamaged = "store_damaged"
    case storeLost = "store_lost"
    case storeUser = "store_user"
    case storeWaits = "store_waits"
    // An app asked a client for something impossible.
    case badAddress = "bad_address"
    case closed
    // The result of an event.
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
    // The state of a device; no node sends these codes.
    case offline
    case noToken = "no_token"
    case wrongDeployment = "wrong_deployment"
    case newerLog = "newer_log"
}
