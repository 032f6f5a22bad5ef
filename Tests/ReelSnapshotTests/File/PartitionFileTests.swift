import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Testing

@testable import ReelSnapshot

/// Tests the content of a partition's file after faults, during writes, and during reads.
@Suite(.timeLimit(.minutes(5)))
struct PartitionFileTests {
    let todo = StreamName("todo")!

    @Test("a full disk leaves position and data of one commit, and the fold continues once there is space")
    func fullDisk() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<400).map { writer.event(at: $0, objects: 400) }, key: "todo", to: 0)
        var failures = 0
        var next: Seq = 0
        for room in stride(from: 1, to: 1_000, by: 1) {
            guard next < 400 else { break }
            do {
                let file = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
                let pages = try file.connection.integer("PRAGMA page_count") ?? 0
                try file.connection.execute("PRAGMA max_page_count = \(Int(pages) + room % 3)")
                let folder = try lab.folder(0, file)
                next = folder.next
                while next < 400 {
                    let batch = try lab.log.read(0, from: next, to: next + 30, bytes: 1 << 20)
                    _ = try folder.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
                    next = folder.next
                }
            } catch let error as SQLiteError where error.kind == .full {
                failures += 1
            }
            let lines = try lab.reader(0).lines(of: todo, after: .none)
            #expect(lines.seq == next - 1)
            #expect(try lines.text == foldOfLog(lab.log, todo, to: lines.seq).lines)
        }
        #expect(next == 400)
        #expect(failures > 3)
    }

    @Test("every offset is accounted for: holes within a batch and at its end are passed, and end the row of seeds")
    func holes() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<12).map { writer.event(at: $0) }, key: "todo", to: 0)
        let whole = try lab.log.read(0, from: 0, to: 11, bytes: 1 << 20)
        let kept = whole.entries.filter { ![0, 4, 5, 10, 11].contains($0.seq) }
        let batch = RecordBatch(partition: 0, seqs: 0..<12, entries: kept) { withExtendedLifetime(whole) {} }
        do {
            let folder = try lab.folder(0, SnapshotFile(path: lab.path(0), identity: lab.identity(0)))
            let report = try folder.fold(kept[...], of: batch, upTo: 12)
            #expect(report.seqs == 12)
        }
        let position = try StoredPosition(reading: Connection(path: lab.path(0), mode: .readOnly))
        #expect(position.next == 12)
        #expect(position.phase == .open)
        #expect(position.last == batch.witness(of: kept.last!))
        #expect(try lab.reader(0).lines(of: todo, after: .none).seq == 11)
    }

    @Test("a batch that leaves a record out, or comes twice, is not folded")
    func wrongBatch() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<12).map { writer.event(at: $0) }, key: "todo", to: 0)
        let folder = try lab.folder(0, SnapshotFile(path: lab.path(0), identity: lab.identity(0)))
        let batch = try lab.log.read(0, from: 0, to: 5, bytes: 1 << 20)
        _ = try folder.fold(batch.entries[...], of: batch, upTo: 6)
        #expect(throws: PartitionProjector.Stop.self) { try folder.fold(batch.entries[...], of: batch, upTo: 6) }
    }

    @Test("a node returns no snapshot before the seeds are complete, even after a restart")
    func noSnapshotWithinSeeds() async throws {
        let lab = try Lab(partitions: 1)
        let site = #"{"line":{"end":-1,"op":4,"site":"00000000-0000-4000-8000-000000000001"},"type":"seed"}"#
        let object = { (id: Int) in
            let field = #"["Milk","00000000-0000-4000-8000-000000000001"]"#
            return #"{"line":{"fields":{"t":\#(field)},"object":["m","o\#(id)"]},"type":"seed"}"#
        }
        try await lab.log.append([site, object(0)], key: "todo", to: 0)
        for round in 1...2 {
            let node = try lab.node()
            try await lab.reach(node, 0, Seq(round))
            #expect(throws: SnapshotError.self) { try lab.reader(0).lines(of: todo, after: .none) }
            node.close()
            try await lab.log.append([object(round)], key: "todo", to: 0)
        }
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([#"{"open":true,"type":"barrier"}"#], key: "~reel", to: 0)
        try await lab.reach(node, 0, 4)
        let lines = try lab.reader(0).lines(of: todo, after: .none).text.split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines.last?.hasPrefix(#"{"count":4,"#) == true)
    }

    @Test("a node folds nothing after the end of an epoch, and its snapshot names the next epoch")
    func stopsAtEpochEnd() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<5).map { writer.event(at: $0) }, key: "todo", to: 0)
        try await lab.log.append([#"{"end":"00000000000000ab","type":"barrier"}"#], key: "~reel", to: 0)
        try await lab.log.append([writer.event(at: 6)], key: "todo", to: 0)
        for _ in 0..<2 {
            let node = try lab.node()
            try await lab.reach(node, 0, 6)
            let text = try lab.reader(0).lines(of: todo, after: .none).text
            #expect(text.split(separator: "\n")[0].contains(#""next":"00000000000000ab""#))
            let fold = try foldOfLog(lab.log, todo, to: 4).lines
            #expect(text.split(separator: "\n").dropFirst() == fold.split(separator: "\n").dropFirst())
            node.close()
        }
    }

    @Test("the index does not restore removed events when its limit grows")
    func indexKeepsTruncation() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.keptEvents = 10
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<50).map { writer.event(at: $0) }, key: "todo", to: 0)
        for kept in [Int64(10), 1_000] {
            lab.settings.keptEvents = kept
            let node = try lab.node()
            let next = try lab.log.bounds(0).last + 1
            try await lab.log.append([writer.event(at: next)], key: "todo", to: 0)
            try await lab.reach(node, 0, next)
            node.close()
        }
        do {
            _ = try lab.reader(0).page(of: todo, after: 5, limit: 100)
            Issue.record("found a page, expected truncated")
        } catch let problem as Problem {
            #expect(problem.code == .truncated)
            #expect(problem.first == 41)
        }
        #expect(try lab.reader(0).page(of: todo, after: 40, limit: 100).chunk.to == 51)
    }

    @Test("a read that has begun keeps its file while the node puts it aside and makes another")
    func readMeetsPuttingAside() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 9)
        try await lab.log.append((0..<10).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 9)
        node.close()
        let place = PartitionFileSlot(lab.path(0))
        let (connection, position) = try place.beginRead()
        #expect(position.next == 10)
        let aside = try place.putAside()
        #expect(throws: SQLiteError.self) { try place.beginRead() }
        _ = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
        #expect(try place.beginRead().1.next == 0)
        let stored = try StoredStream(sitesOf: todo, identity: lab.identity(0), seq: 9, in: connection)
        #expect(stored?.fold.consumed ?? 0 > 0)
        #expect(try connection.integer("SELECT value FROM meta WHERE name = 'next'") == 10)
        #expect(try PartitionFileSlot(aside).beginRead().1.next == 10)
    }

    @Test("a new file of a later log is inside the seeds from the first moment") func newFileOfALaterLog() throws {
        let lab = try Lab(partitions: 1)
        _ = try SnapshotFile(path: lab.path(0), identity: lab.identity(0), number: 1)
        let error = #expect(throws: SnapshotError.self) { try lab.reader(0).seq(of: todo) }
        #expect(error?.code == .nodeBehind)
    }

    @Test("a stream that its name does not lead to is damage") func lostName() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 3)
        try await lab.log.append([writer.event(at: 0)], key: "a-name-to-be-found", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 0)
        node.close()
        let file = try Connection(path: lab.path(0), mode: .readWrite)
        #expect(try file.integer("SELECT count(*) FROM stream") == 1)
        #expect(try file.checkpoint(.truncate))
        var bytes = try Data(contentsOf: URL(filePath: lab.path(0)))
        // The name is once in the table and once in the index, which is on a later page.
        let name = Data("a-name-to-be-found".utf8)
        let inIndex = try #require(bytes.range(of: name, options: .backwards))
        #expect(bytes.range(of: name) != inIndex)
        bytes[inIndex.lowerBound + 7] ^= 1
        try bytes.write(to: URL(filePath: lab.path(0)))
        #expect(throws: SnapshotFile.Unusable.self) {
            try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
        }
    }

    @Test("files put aside are bounded in number")
    func manyAside() throws {
        let lab = try Lab(partitions: 1)
        let place = PartitionFileSlot(lab.path(0))
        for _ in 0..<PartitionFileSlot.asideMost {
            _ = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
            _ = try place.putAside()
        }
        _ = try SnapshotFile(path: lab.path(0), identity: lab.identity(0))
        #expect(throws: PartitionFileSlot.NotPutAside.self) { try place.putAside() }
        #expect(FileManager.default.fileExists(atPath: lab.path(0)))
    }

    @Test("a flipped byte in a row is damage, not the asker's mistake")
    func flippedByte() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<50).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 49)
        node.close()
        let file = try Connection(path: lab.path(0), mode: .readWrite)
        let row = try file.prepare("SELECT key, data FROM object WHERE length(data) > 20 LIMIT 1")
        #expect(try row.step())
        let (key, data) = (row.array(0), row.array(1))
        row.reset()
        for place in data.indices {
            var flipped = data
            flipped[place] ^= 0x10
            let update = try file.prepare("UPDATE object SET data = ? WHERE key = ?")
            update.bind(1, flipped)
            update.bind(2, key)
            try update.run()
            #expect(throws: StateReader.Damage.self, "byte \(place)") {
                try lab.reader(0).lines(of: todo, after: .none)
            }
        }
    }

    @Test("answers under way are bounded, and each gives its turn back")
    func answers() {
        let answers = ResponseLimiter(most: 2)
        var held = [answers.take(), answers.take()]
        #expect(held.allSatisfy { $0 != nil })
        #expect(answers.take() == nil)
        held.removeLast()
        #expect(answers.take() != nil)
    }

    @Test("one client has a quarter of the answers at most")
    func shares() {
        let answers = ResponseLimiter(most: 8)
        let (ann, eve) = (Payer.subject("ann"), Payer.subject("eve"))
        var held = [answers.take(for: eve), answers.take(for: eve)]
        #expect(held.allSatisfy { $0 != nil })
        #expect(answers.take(for: eve) == nil && !answers.isFull)
        let local = (0..<3).map { _ in answers.take(for: .address(0)) }
        #expect(local.allSatisfy { $0 != nil }, "this machine's clients without tokens are not counted")
        #expect(answers.take(for: ann) != nil)
        held.removeLast()
        #expect(answers.take(for: eve) != nil)
    }
}
