/// The checker's verdict on a run.
public struct Verdict: Sendable {
    /// The three possible verdicts.
    public enum Word: String, Sendable {
        /// All checked facts satisfy the invariants.
        case valid
        /// At least one fact violates an invariant, with proof.
        case invalid
        /// The evidence is not sufficient for a verdict.
        case unknown
    }

    /// The verdict.
    public let word: Word
    /// For each invariant the number of checked facts, and the number of violations.
    public let counts: [(invariant: Invariant, facts: Int, violations: Int)]
    /// The first few violations of each invariant.
    public let violations: [Violation]
    /// The reasons why some facts are unknown. Empty for the verdict `valid`; may contain entries for `invalid` as
    /// well.
    public let reasons: [String]
    /// Notes for the reader: how much was checked, and what was not.
    public let notes: [String]
    /// The number of acks of events that an operator was told are lost with their log.
    public let printedAsLost: Int

    init(_ findings: Findings, reasons: [String], notes: [String], printedAsLost: Int) {
        self.printedAsLost = printedAsLost
        counts = Invariant.allCases.map { ($0, findings.facts[$0.rawValue], findings.violated[$0.rawValue]) }
        violations = findings.violations.sorted { $0.invariant.rawValue < $1.invariant.rawValue }
        self.reasons = reasons
        self.notes = notes
        word = !findings.violations.isEmpty ? .invalid : reasons.isEmpty ? .valid : .unknown
    }

    /// The verdict with its table and its proof, as text for people.
    public var text: String {
        var lines = ["verdict: \(word.rawValue)"]
        let width = counts.map(\.invariant.title.count).max() ?? 0
        for (invariant, facts, violations) in counts {
            let title = invariant.title + String(repeating: " ", count: width - invariant.title.count)
            let held = facts > 0 ? "holds" : "nothing was there to look at"
            let outcome = violations > 0 ? "\(violations) VIOLATED" : held
            lines.append("  \(title)  \(outcome)\(facts > 0 ? ", \(facts) looked at" : "")")
        }
        lines += notes.map { "note: \($0)" }
        lines += reasons.map { "not known: \($0)" }
        for violation in violations {
            lines.append("VIOLATED, \(violation.invariant.title): \(violation.sentence)")
            lines += violation.lines.map { "    \($0)" }
        }
        return lines.joined(separator: "\n")
    }
}
