import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests streams that are larger than the memory of the node.
@Suite(.timeLimit(.minutes(5)))
struct StreamMemoryTests {
    private static let todo = StreamName("todo")!
    private static let site = "00000000-0000-4000-8000-000000000001"

    /// A partition's file, and the projector that folds into it.
    private struct Node {
        var lab: Lab
        var file: SnapshotFile
        var projector: PartitionProjector

        init(_ lab: Lab) throws {
            self.lab = lab
            file = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
            projector = try lab.folder(0, file)
        }

        /// Continues as after a crash.
        mutating func restart() throws { self = try Node(lab) }

        /// Folds the log up to a seq, in batches of `count` records.
        mutating func fold(to last: Seq, by count: Seq) throws {
            while projector.next <= last {
                let end = min(last, projector.next + count - 1)
                let batch = try lab.log.read(0, from: projector.next, to: end, bytes: 1 << 24)
                _ = try projector.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
                while projector.waitingCount > 0 { _ = try projector.foldWaiting() }
            }
        }

        func digest(of stream: StreamName) throws -> UInt64? {
            let held = DigestsRequest.HeldState(stream: stream, seq: .none)
            return try lab.reader(0).digests(of: [held], goal: .none).first?.get().digest
        }
    }

    private func insert(_ id: String, _ op: Int, _ text: String) -> String {
        EventText.logged("insert", Self.site, op, model: "m", id: id, fields: #"{"t":"\#(text)"}"#).text
    }

    private func lab(cachedBytes: Int) throws -> Lab {
        var lab = try Lab(partitions: 1)
        lab.settings.cachedBytes = cachedBytes
        return lab
    }

    /// Expects the same answers from both nodes, and those of a fold of the whole log.
    private func expectAlike(_ one: Node, _ other: Node, _ numbers: inout SeededNumbers) throws {
        let seq = one.projector.next - 1
        for name in ["todo", "notes"] {
            let stream = try #require(StreamName(name))
            var (reader, second) = (one.lab.reader(0), other.lab.reader(0))
            // One keeps the rows that have lines, or some of them; the other reads them again.
            (reader.keptBytes, second.keptBytes) = (numbers.pick([1 << 20, 2_000]), 0)
            let lines = try reader.lines(of: stream, after: .none).text
            #expect(try lines == second.lines(of: stream, after: .none).text)
            #expect(try lines == foldOfLog(one.lab.log, stream, to: seq).lines)
            #expect(try one.digest(of: stream) == other.digest(of: stream))
            var fold = try foldOfLog(one.lab.log, stream, to: seq)
            let after = max(fold.horizon, seq - Seq.random(in: 0...60, using: &numbers), 0)
            var writer = try fold.snapshot(after: after)
            var delta: [UInt8] = []
            writer.writeAll(to: &delta)
            #expect(try reader.lines(of: stream, after: after).text == String(decoding: delta, as: UTF8.self))
            #expect(try second.lines(of: stream, after: after).text == String(decoding: delta, as: UTF8.self))
            let cut = try #require(SnapshotCut(model: "m", id: numbers.pick(["\"1", "\\2", "o30", "o45"])))
            var rest = try fold.rest(after: after, beyond: cut)
            var restLines: [UInt8] = []
            rest.writeAll(to: &restLines)
            let found = try second.lines(of: stream, after: after, beyond: cut).text
            #expect(found == String(decoding: restLines, as: UTF8.self))
        }
    }

    @Test("a node with a tiny cache answers as one with a large cache, after restarts and kills", arguments: 1...4)
    func answersAlike(number: Int) async throws {
        let seed = TestSeed.given(or: 500) &+ UInt64(number)
        var numbers = SeededNumbers(seed)
        var large = try Node(try lab(cachedBytes: 256 << 20))
        var small = try Node(try lab(cachedBytes: 9_000))
        var writers = [Writer(seed: seed), Writer(seed: seed &+ 100)]
        var last: Seq = -1
        for _ in 0..<30 * effort {
            var events: [(key: String, value: String)] = []
            for _ in 0..<Int.random(in: 1...40, using: &numbers) {
                last += 1
                guard !numbers.oneIn(50) else {
                    let retire = #"{"retire":{"before":\#(max(0, last - 60)),"stream":"todo"},"type":"barrier"}"#
                    events.append(("~reel", retire))
                    continue
                }
                let index = numbers.oneIn(4) ? 1 : 0
                // Names with escapes have another order of bytes than their decoded names.
                let value = writers[index].event(at: last, objects: 60)
                    .replacing(#""id":"o1"#, with: #""id":"\"1"#).replacing(#""id":"o2"#, with: #""id":"\\2"#)
                events.append((index == 0 ? "todo" : "notes", value))
            }
            for (key, value) in events {
                try await large.lab.log.append([value], key: key, to: 0)
                try await small.lab.log.append([value], key: key, to: 0)
            }
            if numbers.oneIn(3) { try small.restart() }
            if numbers.oneIn(4) { try kill(&small, upTo: last) }
            try large.fold(to: last, by: 20)
            try small.fold(to: last, by: Seq.random(in: 1...20, using: &numbers))
            #expect(small.projector.cachedBytes <= 9_000)
            try expectAlike(large, small, &numbers)
        }
        #expect(small.file.lookups > 0 && large.file.lookups == 0)
    }

    /// Ends the node inside a transaction, of which nothing is kept.
    private func kill(_ node: inout Node, upTo last: Seq) throws {
        let connection = node.file.connection
        let pages = try connection.integer("PRAGMA page_count") ?? 0
        try connection.execute("PRAGMA max_page_count = \(pages)")
        do {
            try node.fold(to: last, by: 7)
        } catch let error as SQLiteError where error.kind == .full {}
        try node.restart()
    }

    @Test("tombstones and histories of texts that are not in memory are forgotten when the horizon passes them")
    func horizon() async throws {
        var node = try Node(try lab(cachedBytes: 9_000))
        var writer = Writer(seed: 8)
        let log = node.lab.log
        try await log.append((0..<400).map { writer.event(at: $0, objects: 150) }, key: "todo", to: 0)
        try node.fold(to: 399, by: 30)
        let aging = "SELECT count(*) FROM object WHERE aging IS NOT NULL"
        #expect(try node.file.connection.integer(aging) ?? 0 > 5)
        let count = Int(Limits.markEvery) * (Limits.marks + 1)
        let noops = (0..<count).map { EventText.logged("noop", Self.site.dropLast() + "9", $0).text }
        try await log.append(noops, key: "todo", to: 0)
        let last = 399 + Seq(count)
        try node.fold(to: last, by: 4_096)
        #expect(try node.file.connection.integer(aging) == 0)
        let lines = try node.lab.reader(0).lines(of: Self.todo, after: .none).text
        #expect(try lines == foldOfLog(log, Self.todo, to: last).lines)
    }

    @Test("an event of a stream that is larger than the cache reads as many rows as it names, in bounded memory")
    func readsFewRows() async throws {
        var node = try Node(try lab(cachedBytes: 500_000))
        let log = node.lab.log
        let text = String(repeating: "x", count: 200)
        // The cache has room for about 700 of these objects.
        for start in stride(from: 0, to: 1_500, by: 100) {
            try await log.append((start..<start + 100).map { insert("o\($0)", $0, text) }, key: "todo", to: 0)
            try node.fold(to: Seq(start + 99), by: 50)
            #expect(node.projector.cachedBytes <= 500_000)
        }
        for start in [0, 1] {
            if start == 1 { try node.restart() }
            // The first event opens the stream.
            var op = 1_500 + 201 * start
            try await log.append([insert("o0", op, "y")], key: "todo", to: 0)
            try node.fold(to: Seq(op), by: 1)
            let before = node.file.lookups
            for number in 0..<200 {
                op += 1
                try await log.append([insert("o\(number * 7)", op, "z")], key: "todo", to: 0)
                try node.fold(to: Seq(op), by: 1)
                #expect(node.projector.cachedBytes <= 500_000)
            }
            let looked = node.file.lookups - before
            #expect(looked > 20 && looked <= 200, "\(looked) rows")
        }
        let last = node.projector.next - 1
        let lines = try node.lab.reader(0).lines(of: Self.todo, after: .none).text
        #expect(try lines == foldOfLog(log, Self.todo, to: last).lines)
    }

    @Test("a row of a large stream that is damaged stops the fold at the first event that needs it")
    func damagedRow() async throws {
        var node = try Node(try lab(cachedBytes: 500_000))
        let log = node.lab.log
        let text = String(repeating: "x", count: 2_000)
        try await log.append((0..<600).map { insert("o\($0)", $0, text) }, key: "todo", to: 0)
        try node.fold(to: 599, by: 50)
        try node.file.connection.execute("UPDATE object SET digest = digest + 1 WHERE key = x'6d006f35'")
        try node.restart()
        try await log.append([insert("o4", 600, "y"), insert("o5", 601, "y")], key: "todo", to: 0)
        try node.fold(to: 600, by: 1)
        #expect(throws: SnapshotFile.Unusable.self) { try node.fold(to: 601, by: 1) }
        try node.restart()
        #expect(node.projector.next == 601)
        // A damaged neighbour may have hidden the row of an object that is not found.
        try await log.append([insert("o4x", 602, "y")], key: "todo", to: 0)
        #expect(throws: SnapshotFile.Unusable.self) { try node.fold(to: 602, by: 1) }
    }

    @Test("a row of a large stream that is missing is found by the next answer with lines", arguments: [0, 1 << 20])
    func missingRow(keptBytes: Int) async throws {
        var node = try Node(try lab(cachedBytes: 500_000))
        let log = node.lab.log
        let text = String(repeating: "x", count: 2_000)
        try await log.append((0..<600).map { insert("o\($0)", $0, text) }, key: "todo", to: 0)
        try node.fold(to: 599, by: 50)
        var reader = node.lab.reader(0)
        reader.keptBytes = keptBytes
        _ = try reader.lines(of: Self.todo, after: .none)
        try node.file.connection.execute("DELETE FROM object WHERE key = x'6d006f35'")
        try node.restart()
        // The fold cannot distinguish it from an object that never existed.
        try await log.append([insert("o5", 600, "y")], key: "todo", to: 0)
        try node.fold(to: 600, by: 1)
        for after in [Seq.none, 599] {
            #expect(throws: StateReader.Damage.self) { try reader.lines(of: Self.todo, after: after) }
        }
        let cut = try #require(SnapshotCut(model: "m", id: "o3"))
        #expect(throws: StateReader.Damage.self) { try reader.lines(of: Self.todo, after: 599, beyond: cut) }
    }

    @Test("a damaged entry of the index of aging rows is found when the horizon moves")
    func damagedAging() async throws {
        let node = try Node(try lab(cachedBytes: 500_000))
        let file = node.file
        try file.connection.begin()
        for seq in Seq(0)..<10 {
            try [UInt8]("row \(seq)".utf8).withUnsafeBytes {
                try file.setObject(1, key: [109, 0, UInt8(seq)], data: $0, digest: 7, aging: seq)
            }
        }
        try file.connection.commit()
        func seqs() throws -> [Seq] { try file.agingKeys(1, upTo: 6, after: nil, limit: 100).map(\.seq) }
        #expect(try seqs() == Array(0...6))
        let last = AgingKey(seq: 2, key: [109, 0, 2])
        #expect(try file.agingKeys(1, upTo: 6, after: last, limit: 2).map(\.seq) == [3, 4])
        for wrong in [7, 3] {
            try file.connection.execute("UPDATE object SET aging = \(wrong) WHERE aging = 4")
            #expect(throws: SnapshotFile.Unusable.self) { try seqs() }
            try file.connection.execute("UPDATE object SET aging = 4 WHERE aging = \(wrong) AND key = x'6d0004'")
        }
    }
}
