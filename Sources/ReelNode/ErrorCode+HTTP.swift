public import ReelCore

extension ErrorCode {
    /// The status of an HTTP answer that carries the code.
    public var httpStatus: Int {
        switch self {
        case .badJSON, .badFrame, .badEvent, .badStream, .badRange, .badNumber, .badBase, .badRequest: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound, .noObject: 404
        case .methodNotAllowed: 405
        case .epochChanged, .aheadOfLog, .diverged, .conflict, .gap, .stale, .foreign, .duplicate, .guard: 409
        case .truncated, .deleted: 410
        case .tooLarge: 413
        case .limit, .type, .range, .tooManySites: 400
        case .rateLimited: 429
        case .overloaded, .logUnavailable, .nodeBehind: 503
        case .internal: 500
        }
    }

    /// The code in words, the same for every occurrence.
    public var title: String {
        switch self {
        case .badJSON: "The text is not JSON as it must be"
        case .badFrame: "The frame is not of a known shape"
        case .badEvent: "The event is not valid"
        case .badStream: "The name is no stream's name"
        case .badRange: "The range or position is not valid"
        case .badNumber: "A number cannot be held exactly"
        case .badBase: "The base is not before the event"
        case .badRequest: "The request is not of the expected form"
        case .tooLarge: "Something is larger than its limit"
        case .limit: "A limit of this node is reached"
        case .unauthorized: "The token is missing or not valid"
        case .forbidden: "The token does not allow this"
        case .notFound: "There is no such thing"
        case .methodNotAllowed: "The path has no such method"
        case .rateLimited: "Too many requests"
        case .overloaded: "The node has too much to do"
        case .logUnavailable: "The log does not answer"
        case .epochChanged: "The log has another epoch"
        case .truncated: "The log no longer holds this position"
        case .nodeBehind: "The node has not read so far yet"
        case .aheadOfLog: "The position lies beyond the end of the log"
        case .diverged: "The log holds something else there"
        case .conflict: "The op was used for another event"
        case .gap: "An op is missing before this one"
        case .stale: "The base is older than the horizon"
        case .tooManySites: "The stream has all the sites it may have"
        case .foreign: "The site belongs to somebody else"
        case .duplicate: "The op was consumed before"
        case .deleted: "The object was deleted"
        case .noObject: "There is no such object"
        case .guard: "A guard does not hold"
        case .type: "The field has another type"
        case .range: "A number or an offset is out of range"
        case .internal: "The node failed"
        }
    }
}
