internal import ReelBase
internal import ReelClient
internal import ReelCore

extension StorageConformance.Check {
    /// Checks of much content, and of random content. They take the longest, and come last.
    static let bulk: [Self] = [
        Self("random commits leave the content of a model") { trial in
            for seed in 0..<UInt64(12) { try randomCommits(trial, seed) }
        },
        Self("100,000 pairs are found again") { trial in
            let (probe, count) = (try trial.make(), 100_000)
            // 40,503 is coprime to the count, so each key comes once, far from the last one.
            for start in stride(from: 0, to: count, by: 2_000) {
                try probe.commit { changes in
                    for i in start..<(start + 2_000) {
                        let key = i &* 40_503 % count
                        changes.put(bytes(key), bytes(key) + Array(repeating: 1, count: 40))
                    }
                }
            }
            try expectRun(try probe.snapshot(), 0..<count)
            try probe.commit { $0.removeRange(from: bytes(100), to: bytes(90_000)) }
            try expectRun(try probe.snapshot(), 0..<100, 90_000..<count)
            let view = try probe.snapshot()
            for key in stride(from: 0, to: count, by: 997) {
                let found = try view.value(for: bytes(key))
                let expected = (100..<90_000).contains(key) ? nil : bytes(key) + Array(repeating: 1, count: 40)
                try expect(
                    found == expected,
                    "found \(found.map(text) ?? "no value") of key \(key), expected \(expected.map(text) ?? "none")"
                )
            }
        },
    ]

    /// Throws if a snapshot does not have the keys of these ranges, in order, and no others.
    private static func expectRun(_ view: View, _ ranges: Range<Int>...) throws {
        var expected = ranges.flatMap { $0 }[...]
        for pair in try view.pairs(from: [], to: Model.end) {
            let next = expected.popFirst()
            try expect(
                number(pair.key) == next,
                "found the key \(text(pair.key)), expected \(next.map { text(bytes($0)) } ?? "no more")"
            )
            try expect(pair.value.count == 48, "found \(pair.value.count) bytes at \(text(pair.key)), expected 48")
        }
        if let next = expected.first { throw Wrong("found no key \(text(bytes(next)))") }
    }

    private static func randomCommits(_ trial: Trial, _ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var (probe, model) = (try trial.make(), Model())
        var held: [(view: View, model: Model, round: Int)] = []
        func key() -> [UInt8] {
            (0..<Int.random(in: 0...3, using: &random)).map { _ in
                [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
            }
        }
        for round in 0..<60 {
            var changes = StorageChanges()
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                switch Int.random(in: 0..<10, using: &random) {
                case 0: changes.removeRange(from: key(), to: key())
                case 1, 2: changes.remove(key())
                default:
                    let size = Int.random(in: 0..<8, using: &random) == 0 ? 2_000 : 5
                    changes.put(key(), (0..<Int.random(in: 0...size, using: &random)).map { UInt8($0 & 0xFF) })
                }
            }
            try probe.commit(changes, durably: Int.random(in: 0..<20, using: &random) == 0)
            model.apply(changes)
            try probe.expect(model, "seed \(seed), after commit \(round)")
            if Int.random(in: 0..<6, using: &random) == 0 { held.append((try probe.snapshot(), model, round)) }
            if held.count > 4 {
                let (view, model, made) = held.removeFirst()
                try view.expect(model, "seed \(seed), in the snapshot of commit \(made), after commit \(round)")
            }
            if trial.suite.reopen != nil, Int.random(in: 0..<15, using: &random) == 0 {
                held = []
                probe.close()
                probe = try trial.reopen(probe)
                try probe.expect(model, "seed \(seed), reopened after commit \(round)")
            }
        }
    }
}
