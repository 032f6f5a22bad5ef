/// The invariants of a cluster under all faults, as `reel check` proves them.
public enum Invariant: Int, CaseIterable, Sendable {
    case ackedLoss, phantom, doubled, siteOrder, oneOrder, gap, coverage, snapshot, digest, inheritance, heads, stuck

    /// A short title for a table.
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

/// A fact that violates an invariant, with the lines that prove it.
public struct Violation: Sendable {
    /// The violated invariant.
    public let invariant: Invariant
    /// One sentence that says what was found and what was expected.
    public let sentence: String
    /// The lines `FILE:LINE: …` of histories and of the log. They are read from the files when this property is read.
    public var lines: [String] { quotes.map(\.description) }

    let quotes: [Quote]
}

/// The number of facts that were checked, and their violations.
struct Findings: Sendable {
    /// The number of checked facts, by `Invariant.rawValue`.
    var facts = [Int](repeating: 0, count: Invariant.allCases.count)
    var violated = [Int](repeating: 0, count: Invariant.allCases.count)
    /// The first violations of each kind.
    var violations: [Violation] = []
    /// By reason: the number of facts that could not be checked, and the place of the first one.
    var unjudged: [String: (count: Int, place: String?)] = [:]

    /// The maximum number of violations of each kind that are shown.
    private static let shownMax = 5

    @inline(__always)
    mutating func fact(_ invariant: Invariant, _ count: Int = 1) {
        facts[invariant.rawValue] += count
    }

    mutating func violation(_ invariant: Invariant, _ sentence: String, _ quotes: [Quote?]) {
        violated[invariant.rawValue] += 1
        guard violated[invariant.rawValue] <= Self.shownMax else { return }
        violations.append(Violation(invariant: invariant, sentence: sentence, quotes: quotes.compactMap(\.self)))
    }

    /// Counts facts that could not be checked. `place` may be slow to find, so it is evaluated only for the first fact
    /// of a reason.
    mutating func unjudged(_ reason: String, _ count: Int = 1, at place: @autoclosure () -> String? = nil) {
        let before = unjudged[reason]
        unjudged[reason] = ((before?.count ?? 0) + count, before?.place ?? place())
    }

    mutating func add(_ other: Findings) {
        for (index, count) in other.facts.enumerated() { facts[index] += count }
        for violation in other.violations {
            let shown = violations.count { $0.invariant == violation.invariant }
            if shown < Self.shownMax { violations.append(violation) }
        }
        for (index, count) in other.violated.enumerated() { violated[index] += count }
        for (reason, facts) in other.unjudged { unjudged(reason, facts.count, at: facts.place) }
    }
}
