/// What the fold makes of a record.
public enum Judgement: Sendable, Equatable, CustomStringConvertible {
    /// The event is consumed and has done what it says.
    case applied
    /// The event is consumed and has changed no object.
    case rejected(Code)
    /// Not consumed: the site's op was consumed before.
    case duplicate
    /// Not consumed: an op before it is missing, or the site has ended.
    case gap
    /// Not consumed: an unknown site whose base lies below the horizon or below the last retirement of sites.
    case stale
    /// Not consumed: the stream has all the sites that it may have, those that have ended apart.
    case tooManySites
    /// Not consumed: another author's site.
    case foreign
    /// A line of the state with which the epoch begins.
    case seed
    /// The rules change here, or the epoch ends or opens.
    case barrier
    /// No valid record of this place: no effect. The reason is for people to read.
    case void(String)
    /// The partition cannot be folded beyond an unknown barrier.
    case stopped

    /// The one word that everybody uses for it: `applied`, `rejected(guard)`, `void`, …
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

/// Why a consumed event was rejected.
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
