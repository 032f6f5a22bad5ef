internal import ReelBase
internal import ReelClient
internal import ReelCore

extension StorageConformance.Check {
    /// Checks of `close` and `erase`.
    static let endings: [Self] = [
        Self("after close every use throws closed") { trial in
            let probe = try trial.make()
            try probe.commit { $0.put([1], [1]) }
            probe.close()
            try expectClosed(probe, "after close")
            probe.close()
            try expectClosed(probe, "after a second close")
        },
        Self("a snapshot that is held at close stays readable or throws closed") { trial in
            let probe = try trial.make()
            var (model, changes) = (Model(), StorageChanges())
            for i in 0..<500 { changes.put(bytes(i), bytes(i)) }
            try probe.commit(changes)
            model.apply(changes)
            let view = try probe.snapshot()
            probe.close()
            try expectClosedOrRead(view, model)
        },
        Self("a close during an iteration ends it or lets it finish") { trial in
            let probe = try trial.make()
            try probe.commit { for i in 0..<3_000 { $0.put(bytes(i), Array(repeating: 1, count: 100)) } }
            let view = try probe.snapshot()
            var (count, thrown): (Int, ReelError?) = (0, nil)
            do throws(ReelError) {
                try view.snapshot.forEach(from: [], to: Model.end) { _, _ throws(ReelError) in
                    count += 1
                    if count == 10 { probe.close() }
                    return true
                }
            } catch {
                thrown = error
            }
            try expect(
                thrown?.code == .closed || (thrown == nil && count == 3_000),
                "found \(thrown.map { "\($0)" } ?? "no error") after \(count) of 3,000 pairs"
            )
        },
        Self("an erased storage is at its end") { trial in
            let probe = try trial.make()
            try probe.commit { for i in 0..<100 { $0.put(bytes(i), [1]) } }
            try probe.erase()
            try expectClosed(probe, "after erase")
        },
    ]

    /// Checks of a storage that is opened again.
    static let restarts: [Self] = [
        Self("everything is there after close and a new start") { trial in
            var (probe, model) = (try trial.make(), Model())
            for life in 0..<4 {
                for i in 0..<50 {
                    var changes = StorageChanges()
                    changes.put(bytes(i), bytes(life))
                    changes.put(bytes(life * 1_000 + i), Array(repeating: UInt8(life), count: 500))
                    if i % 5 == 0 { changes.removeRange(from: bytes(life * 1_000), to: bytes(life * 1_000 + i / 2)) }
                    try probe.commit(changes, durably: i == 25)
                    model.apply(changes)
                }
                probe.close()
                probe = try trial.reopen(probe)
                try probe.expect(model, "at start \(life + 2)")
            }
        },
        Self("a storage can be opened again while an old snapshot is held") { trial in
            let probe = try trial.make()
            try probe.commit { $0.put([1], [1]) }
            let view = try probe.snapshot()
            probe.close()
            let next = try trial.reopen(probe)
            try next.commit { $0.put([1], [2]) }
            try expect(try next.snapshot().value(for: [1]) == [2], "found another value than the last commit's")
            var (model, changes) = (Model(), StorageChanges())
            changes.put([1], [1])
            model.apply(changes)
            try expectClosedOrRead(view, model)
        },
        Self("an erased storage is empty at the next start") { trial in
            let probe = try trial.make()
            try probe.commit(durably: true) { for i in 0..<100 { $0.put(bytes(i), [1]) } }
            let view = try probe.snapshot()
            try probe.erase()
            let next = try trial.reopen(probe)
            try next.expect(Model(), "after erase and a new start")
            try next.commit { $0.put([1], [1]) }
            _ = view
        },
    ]

    /// Checks of what a crash leaves.
    static let crashes: [Self] = [
        Self("a crash leaves the first commits, and all durable ones") { trial in
            for (seed, count) in [0, 1, 2, 9, 40, 150].enumerated() {
                var random = SeededGenerator(seed: UInt64(seed))
                var (probe, models, durable) = (try trial.make(), [Model()], 0)
                for i in 0..<count {
                    var changes = StorageChanges()
                    for _ in 0..<Int.random(in: 1...4, using: &random) {
                        changes.put(bytes(Int.random(in: 0..<50, using: &random)), bytes(i))
                    }
                    if i % 7 == 6 {
                        changes.removeRange(from: bytes(0), to: bytes(Int.random(in: 0..<50, using: &random)))
                    }
                    let isDurable = Int.random(in: 0..<5, using: &random) == 0
                    try probe.commit(changes, durably: isDurable)
                    var model = models[i]
                    model.apply(changes)
                    models.append(model)
                    if isDurable { durable = i + 1 }
                }
                probe = try trial.crash(probe)
                let found = try probe.snapshot().pairs(from: [], to: Model.end)
                guard let kept = models.lastIndex(where: { $0.pairs == found }) else {
                    throw Wrong("found a content that no commit of \(count) has left")
                }
                try expect(
                    kept >= durable,
                    "found the content of commit \(kept) of \(count), expected that of \(durable) or a later one"
                )
                try probe.commit(durably: true) { $0.put([7], [7]) }
                try expect(try probe.snapshot().value(for: [7]) == [7], "found no value of a commit after a crash")
            }
        }
    ]

    private static func expectClosed(_ probe: Probe, _ moment: String) throws {
        let uses: [(String, () throws(ReelError) -> Void)] = [
            ("snapshot", { () throws(ReelError) in _ = try probe.storage.snapshot() }),
            ("commit", { () throws(ReelError) in try probe.storage.commit(StorageChanges(), durably: false) }),
            ("durable commit", { () throws(ReelError) in try probe.storage.commit(StorageChanges(), durably: true) }),
            ("erase", { () throws(ReelError) in try probe.storage.erase() }),
        ]
        for (name, use) in uses {
            do throws(ReelError) {
                try probe.calls.during(name, use)
            } catch {
                try expect(error.code == .closed, "\(moment): \(name) threw \(error), expected closed")
                continue
            }
            throw Wrong("\(moment): \(name) threw nothing, expected closed")
        }
    }

    private static func expectClosedOrRead(_ view: View, _ model: Model) throws {
        do throws(ReelError) {
            _ = try view.snapshot.value(for: [1])
        } catch {
            return try expect(error.code == .closed, "a held snapshot threw \(error), expected closed")
        }
        try view.expect(model, "in a held snapshot after close")
    }
}
