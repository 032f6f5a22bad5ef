/// What the fold made of a record.
public enum Outcome: Hashable, Sendable {
    /// Consumed, and its effect is in the objects.
    case applied
    /// Consumed without effect; everybody learns of it from the stream itself.
    case rejected(ErrorCode)
    /// Already consumed: nothing changes.
    case duplicate
    /// An op is missing before it, or its site has ended: nothing changes.
    case gap
    /// A new site whose base is older than the horizon: nothing changes.
    case stale
    /// A new site where the stream has all it may have: nothing changes.
    case tooManySites
    /// Written in another's name: nothing changes.
    case foreign
    /// A line of the state that a new epoch begins with.
    case seed
    /// A record that changes the rules at its own seq.
    case barrier
    /// No valid event, for everybody: nothing changes, its seq is covered.
    case void
    /// A barrier that this version does not know: nothing at or behind it may be read.
    case stopped
}

extension Outcome: LosslessStringConvertible {
    /// The outcome of an event that this word says; nil for any other text.
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

    /// The one word that everybody uses for it: `applied`, `rejected(guard)`, `too_many_sites`, …
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
