/// What must be true of a cluster whatever breaks, each as `reel check` proves it.
public enum Invariant: Int, CaseIterable, Sendable {
    case ackedLoss, phantom, doubled, siteOrder, oneOrder, gap, coverage, snapshot, digest, inheritance, heads, stuck

    /// A few words for a table.
    public var title: String {
        switch self {
        case .ackedLoss: "acked events are in the log"
        case .phantom: "what arrived was sent, and is in the log"
        case .doubled: "nothing came twice"
        case .siteOrder: "each site's events in its order"
        case .oneOrder: "the same bytes at each seq for all"
        case .gap: "no silent gap"
        case .coverage: "frames carry all that they prove"
        case .snapshot: "a snapshot is the fold"
        case .digest: "the same digest at the same seq"
        case .inheritance: "an epoch begins as the one before ended"
        case .heads: "heads only go up, and not beyond the log"
        case .stuck: "nothing is stuck at the end"
        }
    }
}

/// One fact that must not be, with the lines that prove it.
public struct Violation: Sendable {
    /// What it breaks.
    public let invariant: Invariant
    /// What was found and what was expected, one sentence.
    public let sentence: String
    /// `FILE:LINE: …` of histories and of the log, read from the files when asked for.
    public var lines: [String] { quotes.map(\.description) }

    let quotes: [Quote]
}

/// How many facts were looked at, and what was wrong with them.
struct Findings: Sendable {
    /// By `Invariant.rawValue`.
    var facts = [Int](repeating: 0, count: Invariant.allCases.count)
    var violated = [Int](repeating: 0, count: Invariant.allCases.count)
    /// The first of each kind.
    var violations: [Violation] = []
    /// Why a fact could not be judged, how many such facts there were, and where the first of them stands.
    var unjudged: [String: (count: Int, place: String?)] = [:]

    /// So many violations of a kind are shown.
    private static let shown = 5

    @inline(__always)
    mutating func fact(_ invariant: Invariant, _ count: Int = 1) {
        facts[invariant.rawValue] += count
    }

    mutating func violation(_ invariant: Invariant, _ sentence: String, _ quotes: [Quote?]) {
        violated[invariant.rawValue] += 1
        guard violated[invariant.rawValue] <= Self.shown else { return }
        violations.append(Violation(invariant: invariant, sentence: sentence, quotes: quotes.compactMap(\.self)))
    }

    /// A place may be slow to find, and is asked for only where it is the first of its reason.
    mutating func unjudged(_ reason: String, _ count: Int = 1, at place: @autoclosure () -> String? = nil) {
        let before = unjudged[reason]
        unjudged[reason] = ((before?.count ?? 0) + count, before?.place ?? place())
    }

    mutating func add(_ other: Findings) {
        for (index, count) in other.facts.enumerated() { facts[index] += count }
        for violation in other.violations {
            let shown = violations.count { $0.invariant == violation.invariant }
            if shown < Self.shown { violations.append(violation) }
        }
        for (index, count) in other.violated.enumerated() { violated[index] += count }
        for (reason, facts) in other.unjudged { unjudged(reason, facts.count, at: facts.place) }
    }
}
