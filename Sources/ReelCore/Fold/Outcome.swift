/// The result of folding one record.
public enum Outcome: Hashable, Sendable {
    /// The event was consumed, and its effect is in the objects.
    case applied
    /// The event was consumed without effect. Every reader of the stream computes the same result.
    case rejected(ErrorCode)
    /// The op was already consumed: nothing changes.
    case duplicate
    /// An earlier op is missing, or the site has ended: nothing changes.
    case gap
    /// The site is new and its base is older than the horizon: nothing changes.
    case stale
    /// The site is new and the stream has the maximum number of sites: nothing changes.
    case tooManySites
    /// The event has another author name than the site (`by`): nothing changes.
    case foreign
    /// The record is a seed: a line of the state that a new epoch begins with.
    case seed
    /// The record is a barrier, which is valid from its own seq on.
    case barrier
    /// The record is no valid event for any reader: nothing changes, and its seq is covered.
    case void
    /// The record is a barrier that this version does not know. Neither the barrier nor any record after it may be
    /// read.
    case stopped
}

extension Outcome: LosslessStringConvertible {
    /// Creates the outcome of an event from its description; nil for any other text.
    public init?(_ text: String) {
        switch text {
        case "applied": self = .applied
        case "duplicate": self = .duplicate
        case "gap": self = .gap
        case "stale": self = .stale
        case "too_many_sites": self = .tooManySites
        case "foreign": self = .foreign
        default:
            guard text.hasPrefix("rejected("), text.hasSuffix(")"),
                let code = ErrorCode(rawValue: String(text.dropFirst(9).dropLast()))
            else { return nil }
            self = .rejected(code)
        }
    }

    /// The one text for the outcome in all interfaces: `applied`, `rejected(guard)`, `too_many_sites`, …
    public var description: String {
        switch self {
        case .applied: "applied"
        case .rejected(let code): "rejected(\(code.rawValue))"
        case .duplicate: "duplicate"
        case .gap: "gap"
        case .stale: "stale"
        case .tooManySites: "too_many_sites"
        case .foreign: "foreign"
        case .seed: "seed"
        case .barrier: "barrier"
        case .void: "void"
        case .stopped: "stopped"
        }
    }
}
