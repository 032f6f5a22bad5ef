import TestSupport
import Testing

@testable import ReelCheck

@Suite struct HistoryGeneratorTests {
    @Test("random histories meet every outcome and code, and each rule of rejected texts and retired sites often")
    func everyRule() {
        var counts: [String: Int] = [:]
        var rules: [DecidedRule: Int] = [:]
        for seed in TestSeed.given(or: 1_000)..<TestSeed.given(or: 1_000) + 12 {
            var generator = HistoryGenerator(seed: seed)
            for step in 0..<HistoryGenerator.steps {
                if generator.isToAge(at: step) { generator.age(toMarkWithin: 1 + generator.random.below(22)) }
                if step == HistoryGenerator.steps - 20 { generator.end() }
                let (judgement, decided) = generator.nextWithRules()
                counts[judgement?.description ?? "nothing", default: 0] += 1
                for rule in decided { rules[rule, default: 0] += 1 }
            }
        }
        for number in 0..<UInt64(3) {
            var big = HistoryGenerator(seed: TestSeed.given(or: 2_000) + number, to: .bytes)
            var hidden = HistoryGenerator(seed: TestSeed.given(or: 3_000) + number, to: .hidden)
            for _ in 0..<100 {
                counts[big.next().judgement?.description ?? "nothing", default: 0] += 1
                _ = hidden.next()
                if hidden.hasFlattenedText { counts["flattened", default: 0] += 1 }
            }
        }

        // `too_many_sites` is not expected here, because it needs 100,000 sites. `ManySitesTests` tests it.
        let words = ["applied", "duplicate", "gap", "stale", "foreign", "seed", "barrier", "void", "stopped"]
        for word in words + ["flattened"] + Code.allCases.map({ Judgement.rejected($0).description }) {
            #expect(counts[word, default: 0] >= 3, "\(word) of \(counts)")
        }
        for rule in DecidedRule.allCases {
            #expect(rules[rule, default: 0] >= rule.leastCount, "\(rule) of \(rules)")
        }
    }
}

extension HistoryGenerator {
    /// Generates the next record, and returns the result of the naive fold and the rules that determined it.
    fileprivate mutating func nextWithRules() -> (judgement: Judgement?, rules: Set<DecidedRule>) {
        let before = fold.streams[Self.stream] ?? StreamState()
        let (record, judgement) = next()
        guard record.key == Self.stream.bytes || record.key == Array("~reel".utf8) else { return (judgement, []) }
        let rules = DecidedRule.all(
            of: Record(key: record.key, value: record.value, in: 0, of: 1),
            at: record.seq,
            in: Self.stream,
            judgement,
            from: before,
            to: fold.streams[Self.stream] ?? StreamState()
        )
        return (judgement, rules)
    }
}

extension DecidedRule {
    /// The minimum number of records in 12 histories of 1,500 records that the rule decides.
    fileprivate var leastCount: Int {
        switch self {
        case .markBelowHorizon, .retiredSeed, .retiredSiteForgotten: 2
        case .sitesRetired, .sitesSpared, .otherStreamRetired, .lowestMarkCounts, .plainWriteIsNews: 10
        default: 50
        }
    }
}
