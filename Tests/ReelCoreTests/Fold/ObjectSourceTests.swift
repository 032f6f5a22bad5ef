import Synchronization
import TestSupport
import Testing

@testable import ReelCore

/// Rows in memory, as an owner of a fold keeps them on disk.
private final class RowSource: ObjectSource {
    struct Content {
        var rows: [[UInt8]: StoredRow] = [:]
        var aging: Set<[UInt8]> = []
        var reads = 0
        var error: ReelError?
    }

    let content = Mutex(Content())

    func row(for key: [UInt8]) -> StoredRow? {
        content.withLock {
            $0.reads += 1
            return $0.rows[key]
        }
    }

    func agingKeys(upTo seq: Seq, after last: AgingKey?) -> [AgingKey] {
        let rows = content.withLock { $0.rows }
        let aging = rows.compactMap { key, row in row.agingSeq.map { AgingKey(seq: $0, key: key) } }
        let sorted = aging.sorted { ($0.seq, Order($0.key)) < ($1.seq, Order($1.key)) }
        let due = sorted.filter { aging in
            last.map { ($0.seq, Order($0.key)) < (aging.seq, Order(aging.key)) } ?? true
        }
        return Array(due.filter { $0.seq <= seq }.prefix(2))
    }

    var hasFailed: Bool { content.withLock { $0.error != nil } }

    func failed(_ error: ReelError) { content.withLock { $0.error = error } }

    /// Writes the rows that differ, and checks that the fold names the stored `agingSeq` of each.
    func write(_ fold: inout Fold) throws {
        try fold.takeUnwrittenRows { row in
            content.withLock {
                #expect($0.rows[row.key]?.agingSeq == row.formerAgingSeq)
                $0.rows[row.key] = row.row
            }
        }
    }

    private struct Order: Comparable {
        let key: [UInt8]
        init(_ key: [UInt8]) { self.key = key }
        static func < (a: Order, b: Order) -> Bool { a.key.lexicographicallyPrecedes(b.key) }
    }
}

extension Fold {
    /// Returns the fold that is loaded from the source, the head, the sites and the totals.
    fileprivate func reopened(_ source: RowSource) throws -> Fold {
        var copy = self
        let totals = copy.totals()
        var head: [UInt8] = []
        writeHead(to: &head)
        var loader = try head.withUnsafeBytes {
            try FoldLoader(
                stream: stream,
                partition: partition,
                epoch: epoch,
                seq: seq,
                head: $0,
                listsChanges: true,
                source: source
            )
        }
        for site in sites() {
            var row: [UInt8] = []
            writeRow(ofSite: site, to: &row)
            try row.withUnsafeBytes { try loader.add(site: site, row: $0) }
        }
        return loader.finish(totals: totals)
    }
}

@Suite("A fold with its objects in a source") struct ObjectSourceTests {
    private static let histories: Range<UInt64> = 0..<UInt64(4 * effort)

    @Test("a fold with a tiny cache has the outcomes, objects and digests of a fold in memory", arguments: histories)
    func agrees(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 8_000 &+ number)
        let source = RowSource()
        var fold = Fold(
            stream: FoldHistory.stream,
            partition: 0,
            epoch: FoldHistory.epoch,
            listsChanges: true,
            source: source
        )
        var event = ParsedEvent()
        var changed: Set<[UInt8]> = []
        for step in 0..<400 {
            if step % 70 == 50 {
                history.jump()
                (fold.consumed, fold.marks) = (history.fold.consumed, history.fold.marks)
            }
            let record = history.step()
            let outcome = fold.fold(record.value, seq: record.seq, &event)
            #expect(outcome == record.outcome)
            var plain = history.fold
            let (totals, expected) = (fold.totals(), plain.totals())
            #expect(totals == expected)
            for part in event.parts {
                let key = record.value.withUnsafeBytes { event.key(of: part, $0) }
                #expect(fold.object(key) == plain.object(key))
                changed.insert(key)
            }
            for key in changed { #expect(fold.holds(key) == plain.holds(key)) }
            if history.random.oneIn(5) { _ = fold.takeChanges() }
            if history.random.oneIn(7) {
                try source.write(&fold)
                #expect(fold.unwrittenCount == 0)
                fold.evict(above: history.random.oneIn(2) ? 0 : 1_000)
                let rows = source.content.withLock { $0.rows }
                let sum = plain.objectSum()
                #expect(rows.count == plain.objectCount)
                #expect(rows.values.reduce(0) { $0 &+ $1.digest } == sum)
            }
            if history.random.oneIn(40) {
                try source.write(&fold)
                fold = try fold.reopened(source)
                #expect(fold.objectCount == 0)
            }
        }
        #expect(source.content.withLock { $0.error } == nil)
        #expect(source.content.withLock { $0.reads } > 50)
    }

    @Test("eviction keeps recent and unwritten objects, and the memory at its limit")
    func evicts() throws {
        let source = RowSource()
        var script = FoldScript()
        script.fold = Fold(stream: script.fold.stream, partition: 0, epoch: script.fold.epoch, source: source)
        for id in 0..<1_000 { script.event("insert", id: "\(id)", fields: #"{"n":1}"#) }
        let fits = script.fold.evict(above: 10_000)
        #expect(!fits)
        #expect(script.fold.objectCount == 1_000)
        try source.write(&script.fold)
        script.fold.evict(above: 0)
        #expect(script.fold.objectCount == 0)
        for _ in 0..<3 {
            for id in 0..<1_000 {
                script.event("update", id: "\(id)", fields: #"{"n":2}"#)
                if id % 20 == 19 {
                    try source.write(&script.fold)
                    script.fold.evict(above: 40_000)
                }
            }
            #expect(script.fold.objectCount < 150)
        }
        let totals = script.fold.totals()
        #expect(totals.livingObjects == 1_000)
    }

    @Test("a row that cannot be read is reported to the source, and counts as absent")
    func damaged() throws {
        let source = RowSource()
        var script = FoldScript()
        script.fold = Fold(stream: script.fold.stream, partition: 0, epoch: script.fold.epoch, source: source)
        script.event("insert", fields: #"{"n":1}"#)
        try source.write(&script.fold)
        script.fold.evict(above: 0)
        source.content.withLock { content in
            for (key, row) in content.rows {
                content.rows[key] = StoredRow(bytes: Array(row.bytes.dropLast()), digest: row.digest, agingSeq: nil)
            }
        }
        #expect(script.fold.object(model: "m", id: "1") == nil)
        #expect(source.content.withLock { $0.error }?.code == .internal)
    }
}

extension Fold {
    /// Returns the sum of the digests of all objects in memory.
    fileprivate mutating func objectSum() -> UInt64 {
        _ = digest()
        return objects.slots.reduce(0) { $1.state == .free ? $0 : $0 &+ $1.digest }
    }
}
