internal import ReelClient
internal import ReelCore

extension StorageConformance.Check {
    /// Checks that a snapshot is one moment.
    static let moments: [Self] = [
        Self("a snapshot does not see later commits") { trial in
            let probe = try trial.make()
            var (model, changes) = (Model(), StorageChanges())
            for i in 0..<300 { changes.put(bytes(i), bytes(i)) }
            try probe.commit(changes)
            model.apply(changes)
            let (read, unread) = (try probe.snapshot(), try probe.snapshot())
            try read.expect(model, "at once")
            try probe.commit {
                $0.put(bytes(5), [1]); $0.put(bytes(1_000), [1])
            }
            try read.expect(model, "after a later put")
            try probe.commit { $0.remove(bytes(7)) }
            try read.expect(model, "after a later remove")
            try probe.commit(durably: true) { $0.removeRange(from: bytes(10), to: bytes(290)) }
            try read.expect(model, "after a later removeRange")
            for i in 0..<200 { try probe.commit { $0.put(bytes(i), Array(repeating: 3, count: 900)) } }
            try read.expect(model, "after many later commits")
            // The moment is that of `snapshot`, not that of the first read.
            try unread.expect(model, "at the first read, after many later commits")
        },
        Self("a snapshot sees all commits that have returned") { trial in
            let probe = try trial.make()
            for i in 1...300 {
                try probe.commit(durably: i % 50 == 0) { $0.put([1], bytes(i)) }
                let found = number(try probe.snapshot().value(for: [1]))
                try expect(found == i, "found the value of commit \(found ?? 0), expected that of commit \(i)")
            }
        },
        Self("fifty snapshots keep fifty moments") { trial in
            let probe = try trial.make()
            var views: [View] = []
            for i in 0..<50 {
                try probe.commit {
                    $0.put([1], bytes(i)); $0.put(bytes(i), [1])
                }
                views.append(try probe.snapshot())
            }
            for (i, view) in views.enumerated().reversed() {
                let found = number(try view.value(for: [1]))
                try expect(found == i, "found the moment of commit \(found ?? -1), expected that of commit \(i)")
                let count = try view.pairs(from: [], to: [1]).count
                try expect(count == i + 1, "found \(count) pairs in the snapshot of commit \(i), expected \(i + 1)")
            }
        },
        Self("a body may use its snapshot and the storage") { trial in
            let probe = try trial.make()
            try probe.commit { for i in 0..<400 { $0.put(bytes(i), bytes(i)) } }
            let view = try probe.snapshot()
            for pair in try view.pairs(from: [], to: bytes(3)) {
                try expect(try view.value(for: pair.key) == pair.value, "found another value than in the iteration")
            }
            var wrong: String?
            try forEach(view) { key in
                let again = try view.value(for: key)
                guard again == key else { return wrong = "value(for:) found \(again.map(text) ?? "nil") in a body" }
                guard let i = number(key), i % 100 == 0 else { return }
                let inner = try view.pairs(from: [], to: key).count
                guard inner == i else { return wrong = "an inner forEach found \(inner) pairs, expected \(i)" }
                try probe.commit {
                    $0.put(bytes(i + 1), [1]); $0.put(bytes(1_000 + i), [1])
                }
            }
            if let wrong { throw Wrong(wrong) }
        },
    ]

    private static func forEach(_ view: View, _ body: ([UInt8]) throws -> Void) throws {
        var (failure, last): ((any Error)?, Int) = (nil, -1)
        try view.snapshot.forEach(from: [], to: Model.end) { key, _ throws(ReelError) in
            do {
                try expect(number(Array(key)) == last + 1, "found \(text(Array(key))) after key \(last)")
                last += 1
                try body(Array(key))
                return true
            } catch {
                failure = error
                return false
            }
        }
        if let failure { throw failure }
        try expect(last == 399, "found key \(last) as the last one, expected 399")
    }
}
