/// What the judge says of a run.
public struct Verdict: Sendable {
    /// The three things that can be said.
    public enum Word: String, Sendable {
        /// Everything that was looked at is as it must be.
        case valid
        /// At least one thing is not, and here is the proof.
        case invalid
        /// What there is does not suffice to say either.
        case unknown
    }

    /// The verdict.
    public let word: Word
    /// For each invariant how many facts were looked at, and how many of them break it.
    public let counts: [(invariant: Invariant, facts: Int, violations: Int)]
    /// The first few of each kind.
    public let violations: [Violation]
    /// Why no verdict can be given; empty unless it is `unknown`, or invalid and more besides.
    public let reasons: [String]
    /// What a reader should know: how much there was, what was not looked at.
    public let notes: [String]
    /// How many acks were of events that lie in what an operator was told is lost with its log.
    public let printedAsLost: Int

    init(_ findings: Findings, reasons: [String], notes: [String], printedAsLost: Int) {
        self.printedAsLost = printedAsLost
        counts = Invariant.allCases.map { ($0, findings.facts[$0.rawValue], findings.violated[$0.rawValue]) }
        violations = findings.violations.sorted { $0.invariant.rawValue < $1.invariant.rawValue }
        self.reasons = reasons
        self.notes = notes
        word = !findings.violations.isEmpty ? .invalid : reasons.isEmpty ? .valid : .unknown
    }

    /// The verdict with its table and its proof, for people.
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
