/// The result of folding one record, as the checker computes it.
public enum Judgement: Sendable, Equatable, CustomStringConvertible {
    /// The event is consumed, and its effect is in the objects.
    case applied
    /// The event is consumed and has changed no object.
    case rejected(Code)
    /// Not consumed: the op of the site was consumed before.
    case duplicate
    /// Not consumed: an earlier op is missing, or the site has ended.
    case gap
    /// Not consumed: the site is unknown, and its base is below the horizon or below the last retirement of sites.
    case stale
    /// Not consumed: the stream has the maximum number of sites. Sites that have ended do not count.
    case tooManySites
    /// Not consumed: the site belongs to another author.
    case foreign
    /// A seed: a line of the state that the epoch begins with.
    case seed
    /// A change of the rules, or the end or the opening of the epoch.
    case barrier
    /// A record that is not valid at its place, and has no effect. The reason is for people to read.
    case void(String)
    /// The partition cannot be folded beyond an unknown barrier.
    case stopped

    /// The one text for the result in all interfaces: `applied`, `rejected(guard)`, `void`, …
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

/// The reason why a consumed event was rejected.
public enum Code: String, CaseIterable, Sendable {
    case badBase = "bad_base"
    case stale
    case deleted
    case noObject = "no_object"
    case `guard`
    case type
    case range
    case tooLarge = "too_large"
}
