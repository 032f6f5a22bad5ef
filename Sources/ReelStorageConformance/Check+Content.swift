internal import ReelClient
internal import ReelCore

extension StorageConformance.Check {
    /// Checks of what a commit leaves: keys, values, ranges, the order of changes.
    static let content: [Self] = [
        Self("a new storage has no pairs") { trial in
            let probe = try trial.make()
            try probe.expect(Model(), "in a new storage")
            try expect(try probe.snapshot().value(for: []) == nil, "found a value of the empty key, expected none")
        },
        Self("keys are in the order of their unsigned bytes, a prefix first") { trial in
            let probe = try trial.make()
            let keys: [[UInt8]] = [
                [0x61, 0x62], [], [0xFF], [0x00], [0x80], [0x7F], [0x61], [0x00, 0x00], [0xFF, 0xFF], [0xFF, 0x00],
                [0x00, 0xFF], [0x61, 0x00], [0x61, 0xFF], [0x61, 0x62, 0x00], [0x62], [0x00, 0x00, 0x01], [0x31, 0x30],
                [0x39], Array(repeating: 0x61, count: 300), Array(repeating: 0x61, count: 299) + [0x62],
            ]
            var model = Model()
            for key in keys {
                var changes = StorageChanges()
                changes.put(key, key + [0x2E])
                try probe.commit(changes)
                model.apply(changes)
            }
            try probe.expect(model, "after \(keys.count) puts")
            for key in keys {
                try expect(
                    try probe.snapshot().value(for: key + [0x03]) == nil,
                    "found a value of \(text(key + [0x03])), which was never put"
                )
            }
        },
        Self("a value has any size and any bytes") { trial in
            let probe = try trial.make()
            var model = Model()
            for size in [0, 1, 255, 256, 4_095, 4_096, 4_097, 65_536, 1 << 20, 0] {
                var changes = StorageChanges()
                changes.put(bytes(size), (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) })
                changes.put([0x01], Array(repeating: UInt8(truncatingIfNeeded: size >> 4), count: size))
                try probe.commit(changes)
                model.apply(changes)
                try probe.expect(model, "after a put of \(size) bytes")
            }
        },
        Self("changes apply in their order within a commit") { trial in
            let (a, b, c, x, y): ([UInt8], [UInt8], [UInt8], [UInt8], [UInt8]) = ([1], [2], [3], [8], [9])
            let commits: [(String, (inout StorageChanges) -> Void)] = [
                (
                    "put, put again",
                    {
                        $0.put(a, x); $0.put(a, y)
                    }
                ),
                (
                    "put, remove",
                    {
                        $0.put(b, x); $0.remove(b)
                    }
                ),
                (
                    "remove, put",
                    {
                        $0.remove(a); $0.put(a, x)
                    }
                ),
                (
                    "put, removeRange",
                    {
                        $0.put(b, x); $0.put(c, x); $0.removeRange(from: a, to: c)
                    }
                ),
                (
                    "removeRange, put",
                    {
                        $0.removeRange(from: [], to: [0xFF]); $0.put(b, y)
                    }
                ),
                (
                    "put, removeRange, put",
                    {
                        $0.put(a, x); $0.removeRange(from: a, to: b); $0.put(a, y)
                    }
                ),
                (
                    "remove an absent key",
                    {
                        $0.remove(c); $0.remove([0xEE])
                    }
                ),
                (
                    "removeRange of nothing",
                    {
                        $0.removeRange(from: c, to: a); $0.removeRange(from: a, to: a)
                    }
                ),
                ("nothing", { _ in }),
            ]
            for durably in [false, true] {
                let probe = try trial.make()
                var model = Model()
                for (name, fill) in commits {
                    var changes = StorageChanges()
                    fill(&changes)
                    try probe.commit(changes, durably: durably)
                    model.apply(changes)
                    try probe.expect(model, "after the commit “\(name)”")
                }
            }
        },
        Self("removeRange removes its range and nothing else") { trial in
            let probe = try trial.make()
            var model = Model()
            func commit(_ fill: (inout StorageChanges) -> Void, _ moment: String) throws {
                var changes = StorageChanges()
                fill(&changes)
                try probe.commit(changes)
                model.apply(changes)
                try probe.expect(model, moment)
            }
            try commit({ for i in 0..<1_000 { $0.put(bytes(i), [UInt8(i % 251)]) } }, "after 1,000 puts")
            for (start, end) in [(0, 1), (5, 5), (9, 7), (10, 300), (299, 310), (700, 2_000)] {
                try commit(
                    { $0.removeRange(from: bytes(start), to: bytes(end)) },
                    "after removeRange from \(start) to \(end)"
                )
            }
            try commit({ $0.removeRange(from: bytes(400) + [0], to: bytes(401)) }, "after removeRange between two keys")
            try commit({ $0.removeRange(from: [], to: Model.end) }, "after removeRange of all")
            try commit({ $0.put(bytes(3), [1]) }, "after a put into the emptied storage")
        },
        Self("a range holds its start and not its end") { trial in
            let probe = try trial.make()
            var (model, changes) = (Model(), StorageChanges())
            for i in 0..<300 { changes.put(bytes(i * 2), bytes(i)) }
            changes.put([], [1])
            try probe.commit(changes)
            model.apply(changes)
            let (view, pairs) = (try probe.snapshot(), model.pairs)
            let bounds = [
                [], [0x00], bytes(0), bytes(0) + [0], bytes(1), bytes(2), bytes(511), bytes(512), bytes(513),
                bytes(598), bytes(599), bytes(600), [0xFF],
            ]
            for start in bounds {
                for end in bounds {
                    try Model.compare(
                        try view.pairs(from: start, to: end),
                        Model.pairs(of: pairs, from: start, to: end),
                        "in the range from \(text(start)) to \(text(end))"
                    )
                }
            }
        },
        Self("an iteration ends when its body returns false or throws") { trial in
            let probe = try trial.make()
            try probe.commit { for i in 0..<500 { $0.put(bytes(i), Array(repeating: 7, count: 300)) } }
            let view = try probe.snapshot()
            for limit in [1, 2, 99, 400, 500] {
                for isError in [false, true] {
                    var calls = 0
                    var thrown: ReelError?
                    do throws(ReelError) {
                        try view.snapshot.forEach(from: [], to: [0xFF]) { _, _ throws(ReelError) in
                            calls += 1
                            if calls == limit, isError { throw ReelError(.deleted, "an error of the body") }
                            return calls < limit
                        }
                    } catch {
                        thrown = error
                    }
                    try expect(calls == limit, "found \(calls) calls of the body, expected \(limit)")
                    try expect(
                        thrown?.code == (isError ? .deleted : nil),
                        "found \(thrown.map { "\($0)" } ?? "no error"), expected \(isError ? "the body's" : "none")"
                    )
                }
            }
        },
    ]
}
