import ReelCore
import TestSupport
import Testing

@testable import ReelCheck

/// Compares the real fold with the naive fold. If they disagree, one of them is wrong; docs/reference/fold.md decides
/// which one.
@Suite struct DifferentialTests {
    @Test(
        "Both folds agree on every record of a random history",
        arguments: (0..<UInt64(8 * effort)).map { TestSeed.given(or: 1_000) + $0 }
    )
    func bothFoldsAgreeOnEveryRecordOf(seed: UInt64) throws {
        var pair = FoldPair(HistoryGenerator(seed: seed), name: "seed \(seed)")
        for step in 0..<HistoryGenerator.steps {
            if pair.generator.isToAge(at: step) { pair.age(toMarkWithin: 1 + pair.generator.random.below(22)) }
            if step == HistoryGenerator.steps - 20 { pair.generator.end() }
            guard pair.foldNext() else { return }
            if step % 25 == 0, !pair.compareDigests() { return }
            if step % 100 == 99 { try pair.compareSnapshots() }
        }
    }

    @Test(
        "Both folds agree where an object comes to its limits",
        arguments: (0..<UInt64(effort)).map { TestSeed.given(or: 2_000) + $0 }
    )
    func bothFoldsAgreeWhereAnObjectComes(seed: UInt64) throws {
        for limit in [HistoryGenerator.Limit.bytes, .hidden] {
            var pair = FoldPair(HistoryGenerator(seed: seed, to: limit), name: "seed \(seed), \(limit)")
            for step in 0..<100 {
                guard pair.foldNext() else { return }
                if step % 20 == 19 { try pair.compareSnapshots() }
            }
        }
    }

    @Test(
        "Both folds agree where a text has as many runs as it may",
        arguments: (0..<UInt64(effort)).map { TestSeed.given(or: 4_000) + $0 }
    )
    func bothFoldsAgreeWhereATextHas(seed: UInt64) throws {
        var pair = FoldPair(HistoryGenerator(seed: seed, to: .runs), name: "seed \(seed)")
        for _ in 0..<60 { guard pair.foldNext() else { return } }
        try pair.splinter()
        var stepsLeft = 200
        while stepsLeft > 0 {
            stepsLeft -= 1
            if stepsLeft == 195 { pair.age(toMarkWithin: 3) }
            guard pair.foldNext(), pair.compareDigests() else { return }
            if pair.generator.weight < 1_000 { stepsLeft = min(stepsLeft, 20) }
        }
        #expect(pair.generator.weight < 1_000, "seed \(seed): the text keeps its runs")
        try pair.compareSnapshots()
    }
}

/// The two folds of one random history.
private struct FoldPair {
    var generator: HistoryGenerator
    private var real = RealPartition(epoch: Epoch(0xaa))
    private var earlier: [NaiveSnapshot] = []
    private let name: String
    private let stream = HistoryGenerator.stream.string

    init(_ generator: HistoryGenerator, name: String) {
        self.generator = generator
        self.name = name
    }

    mutating func age(toMarkWithin events: Int) {
        generator.age(toMarkWithin: events)
        real.age(stream, toMarkWithin: events)
    }

    /// Gives both folds a text with almost the maximum number of runs.
    mutating func splinter() throws {
        generator.splinter()
        if let snapshot = generator.fold.snapshot(of: stream) { try real.load(snapshot, of: stream) }
    }

    /// Folds the next record. Returns false if the outcomes differ.
    mutating func foldNext() -> Bool {
        let (record, judgement) = generator.next()
        let outcome = real.apply(record).description
        if outcome == judgement?.description { return true }
        let value = String(decoding: record.value.prefix(2_000), as: UTF8.self)
        Issue.record("\(name), seq \(record.seq): \(outcome), the judge says \(judgement as Any): \(value)")
        return false
    }

    mutating func compareDigests() -> Bool {
        let right = generator.fold.digest(of: stream)
        let found = real.digest(of: stream)
        if found == right { return true }
        Issue.record("\(name), seq \(generator.fold.seq): digest \(found), the judge says \(right)")
        return false
    }

    /// Compares the snapshots of both folds, and the deltas since earlier snapshots.
    mutating func compareSnapshots() throws {
        guard let right = generator.fold.snapshot(of: stream) else { return }
        let found = try NaiveSnapshot(real.lines(of: stream, after: -1))
        let name = "\(name), seq \(generator.fold.seq)"
        #expect(found.digest == found.declaredDigest, "\(name)")
        #expect(text(found.normalForm) == text(try NaiveSnapshot(right).normalForm), "\(name)")

        for old in earlier {
            guard let expected = generator.fold.snapshot(of: stream, after: old.seq) else {
                #expect(throws: ReelError.self, "\(name)") { try real.lines(of: stream, after: old.seq) }
                continue
            }
            let delta = try NaiveSnapshot(real.lines(of: stream, after: old.seq))
            #expect(text(delta.normalForm) == text(try NaiveSnapshot(expected).normalForm), "\(name)")
            #expect(delta.declaredDigest == found.digest, "\(name)")
            #expect(old.advanced(by: delta)?.normalForm == found.normalForm, "\(name), after \(old.seq)")
        }
        // Sometimes each fold continues from the snapshot of the other one.
        if generator.random.oneIn(3) {
            try real.load(right, of: stream)
            generator.load(found)
        }
        earlier = (earlier + [found]).suffix(4)
    }

    private func text(_ lines: [UInt8]) -> String {
        String(decoding: lines, as: UTF8.self)
    }
}
