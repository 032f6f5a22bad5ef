internal import ReelClient
internal import ReelCore
internal import Synchronization

extension StorageConformance.Check {
    /// Checks of use from several threads.
    static let threads: [Self] = [
        Self("readers beside a writer see each commit whole or not at all") { trial in
            let probe = try trial.make()
            let (commits, keys) = (400, 40)
            @Sendable func write(_ i: Int) throws {
                try probe.commit(durably: i % 100 == 0) { changes in
                    if i % 3 == 0 { changes.removeRange(from: bytes(0), to: bytes(keys)) }
                    for key in 0..<keys { changes.put(bytes(key), bytes(i)) }
                }
            }
            try write(0)
            let isOver = Atomic(false)
            let reader: @Sendable () throws -> Void = {
                var last = 0
                while !isOver.load(ordering: .acquiring) {
                    let view = try probe.snapshot()
                    let pairs = try view.pairs(from: [], to: Model.end)
                    let moments = Set(pairs.map(\.value))
                    try expect(moments.count == 1, "found the values of \(moments.count) commits in one snapshot")
                    try expect(pairs.count == keys, "found \(pairs.count) pairs, expected \(keys)")
                    let moment = number(pairs.first?.value) ?? -1
                    try expect(moment >= last, "found commit \(moment) after commit \(last)")
                    let again = number(try view.value(for: bytes(keys - 1)))
                    try expect(again == moment, "found commit \(again ?? -1) in a snapshot of commit \(moment)")
                    last = moment
                }
            }
            try Threads.run([
                reader, reader, reader,
                {
                    defer { isOver.store(true, ordering: .releasing) }
                    for i in 1...commits { try write(i) }
                },
            ])
        },
        Self("commits of several threads all count") { trial in
            let probe = try trial.make()
            try Threads.run(
                (0..<4).map { thread in
                    {
                        for i in 0..<60 {
                            try probe.commit(durably: i % 30 == 0) { $0.put(bytes(thread * 1_000 + i), bytes(i)) }
                        }
                    }
                }
            )
            let keys = try probe.snapshot().pairs(from: [], to: Model.end).map { number($0.key) }
            let expected = (0..<4).flatMap { thread in (0..<60).map { thread * 1_000 + $0 } }
            try expect(keys == expected, "found \(keys.count) pairs of 240, or others")
        },
        Self("several threads read one snapshot") { trial in
            let probe = try trial.make()
            try probe.commit { for i in 0..<2_000 { $0.put(bytes(i), bytes(i * 3)) } }
            let view = try probe.snapshot()
            try probe.commit { $0.removeRange(from: [], to: Model.end) }
            try Threads.run(
                (0..<4).map { thread in
                    {
                        let count = try view.pairs(from: [], to: Model.end).count
                        try expect(count == 2_000, "found \(count) pairs, expected 2000")
                        for i in stride(from: thread, to: 2_000, by: 7) {
                            let found = number(try view.value(for: bytes(i)))
                            try expect(found == i * 3, "found \(found ?? -1) at key \(i), expected \(i * 3)")
                        }
                    }
                }
            )
        },
        Self("a snapshot does not wait for a commit") { trial in
            var waits: [String] = []
            // The machine may stop a thread for a long time, but not each time.
            for round in 0..<5 {
                guard let wait = try longestWait(try trial.make(), round) else { return }
                waits.append(wait)
            }
            throw Wrong("in 5 of 5 large commits \(waits.last ?? "")")
        },
    ]

    /// Makes snapshots during a large commit. Returns the longest wait if it is a large part of the commit.
    private static func longestWait(_ probe: Probe, _ round: Int) throws -> String? {
        var changes = StorageChanges()
        for i in 0..<40_000 { changes.put(bytes(i &* 40_503 % 40_000), Array(repeating: 1, count: 100)) }
        let large = changes
        let progress = Mutex(Progress.before)
        let commit = Mutex(Duration.zero)
        let longest = Mutex(Duration.zero)
        try Threads.run([
            {
                progress.withLock { $0 = .during }
                defer { progress.withLock { $0 = .after } }
                let start = ContinuousClock.now
                try probe.commit(large)
                commit.withLock { $0 = ContinuousClock.now - start }
            },
            {
                while progress.withLock({ $0 == .before }) {}
                while progress.withLock({ $0 == .during }) {
                    let start = ContinuousClock.now
                    _ = try probe.snapshot()
                    let wait = ContinuousClock.now - start
                    longest.withLock { $0 = max($0, wait) }
                }
            },
        ])
        let (took, waited) = (commit.withLock { $0 }, longest.withLock { $0 })
        guard waited > took / 2, waited > .milliseconds(2) else { return nil }
        return "a snapshot took \(waited), the commit \(took)"
    }

    private enum Progress {
        case before, during, after
    }
}
