import TestSupport
import Testing

@testable import ReelCheck

@Suite struct HistoryGeneratorTests {
    @Test func `Random histories come to every outcome and every code`() {
        var counts: [String: Int] = [:]
        for seed in TestSeed.given(or: 1_000)..<TestSeed.given(or: 1_000) + 12 {
            var generator = HistoryGenerator(seed: seed)
            for step in 0..<HistoryGenerator.steps {
                if generator.isToAge(at: step) { generator.age(toMarkWithin: 1 + generator.random.below(45)) }
                if step == HistoryGenerator.steps - 20 { generator.end() }
                counts[generator.next().judgement?.description ?? "nothing", default: 0] += 1
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

        // A hundred thousand sites have a test of their own.
        let words = ["applied", "duplicate", "gap", "stale", "foreign", "seed", "barrier", "void", "stopped"]
        for word in words + ["flattened"] + Code.allCases.map({ Judgement.rejected($0).description }) {
            #expect(counts[word, default: 0] >= 3, "\(word) of \(counts)")
        }
    }
}
