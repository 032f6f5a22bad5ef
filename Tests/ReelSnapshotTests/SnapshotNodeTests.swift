import Foundation
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelCore
@testable import ReelSnapshot

@Suite(.timeLimit(.minutes(5)))
struct SnapshotNodeTests {
    let todo = StreamName("todo")!

    @Test("a snapshot is the fold of the log up to its seq, in every line")
    func snapshotIsTheFold() async throws {
        let seed = TestSeed.value
        print("SnapshotNodeTests.snapshotIsTheFold seed \(seed)")
        let lab = try Lab()
        let node = try lab.node()
        defer { node.close() }
        let partition = todo.partition(of: 2)
        var writer = Writer(seed: seed)
        for round in 0..<10 * effort {
            let next = try lab.log.bounds(partition).last + 1
            let values = (0..<30).map { writer.event(at: next + Int64($0)) }
            let seqs = try await lab.log.append(values, key: "todo", to: partition)
            try await lab.reach(node, partition, seqs.last!)
            let lines = try lab.reader(partition).lines(of: todo, after: .none)
            #expect(try lines.text == foldOfLog(lab.log, todo, to: lines.seq).lines, "round \(round)")
        }
    }

    @Test("a node counts what became of the events")
    func outcomeMetric() async throws {
        let (lab, metrics) = (try Lab(), Metrics())
        let node = try lab.node(metrics: metrics)
        defer { node.close() }
        let partition = todo.partition(of: 2)
        let site = Site(high: 1, low: 1)
        func noop(_ op: Int) -> String { EventText.logged("noop", site, op).text }
        let update = EventText.logged("update", site, 2, model: "m", id: "1").text
        let values = [noop(0), noop(1), update, noop(1), noop(9)]
        try await lab.log.append(values, key: "todo", to: partition)
        try await lab.reach(node, partition, 4)
        let shown = metrics.text().split(separator: "\n").filter { $0.hasPrefix("reel_snapshot_outcomes_total{") }
        let counted = shown.filter { !$0.hasSuffix(" 0") }.map { $0.dropFirst("reel_snapshot_outcomes_total".count) }
        #expect(
            Set(counted) == [
                #"{outcome="applied"} 2"#, #"{outcome="rejected(no_object)"} 1"#, #"{outcome="duplicate"} 1"#,
                #"{outcome="gap"} 1"#,
            ]
        )
        #expect(shown.count == 14)
    }

    /// Returns a node that has folded 200 random events of the stream `todo`. `name`: the test, for its seed.
    private func nodeWith200Events(_ name: String) async throws -> (Lab, SnapshotNode) {
        let seed = TestSeed.value
        print("SnapshotNodeTests.\(name) seed \(seed)")
        let lab = try Lab()
        let node = try lab.node()
        let partition = todo.partition(of: 2)
        var writer = Writer(seed: seed)
        let values = (0..<200).map { writer.event(at: Int64($0)) }
        try await lab.log.append(values, key: "todo", to: partition)
        try await lab.reach(node, partition, 199)
        return (lab, node)
    }

    @Test("a delta from any seq brings the fold of that seq to the snapshot's state")
    func deltas() async throws {
        let (lab, node) = try await nodeWith200Events("deltas")
        defer { node.close() }
        let partition = todo.partition(of: 2)
        for after in stride(from: Seq(0), to: 199, by: 13) {
            var fold = try foldOfLog(lab.log, todo, to: after)
            let text = try lab.reader(partition).lines(of: todo, after: after).text
            try Array(text.utf8).withUnsafeBytes { try fold.apply(delta: $0) }
            #expect(try fold.lines == foldOfLog(lab.log, todo, to: 199).lines)
        }
    }

    @Test("a snapshot that was cut after any object continues at the node's seq")
    func rests() async throws {
        let (lab, node) = try await nodeWith200Events("rests")
        defer { node.close() }
        let partition = todo.partition(of: 2)
        let whole = try lab.reader(partition).lines(of: todo, after: .none).text
        let answer = try foldOfLog(lab.log, todo, to: 150).lines.split(separator: "\n").map { Array($0.utf8) }
        var reader = SnapshotReader()
        for line in answer.dropLast() {
            try line.withUnsafeBytes { try reader.read(line: $0) }
            guard reader.step == .objects, let fold = reader.fold else { continue }
            let id = String(decoding: reader.lastKey.dropFirst(2), as: UTF8.self)
            let cut = try #require(SnapshotCut(model: "m", id: id))
            let rest = try lab.reader(partition).lines(of: todo, after: 150, beyond: cut).text
            var second = SnapshotReader(onto: fold, beyond: cut)
            try Array(rest.utf8).withUnsafeBytes { try second.read(lines: $0) }
            #expect(try second.finish().lines == whole)
        }
    }

    @Test("a node continues from its file after a restart and reads nothing twice")
    func continuesAfterRestart() async throws {
        let lab = try Lab()
        let partition = todo.partition(of: 2)
        var writer = Writer(seed: 1)
        for _ in 0..<5 {
            let node = try lab.node()
            let next = try lab.log.bounds(partition).last + 1
            let values = (0..<40).map { writer.event(at: next + Int64($0)) }
            let seqs = try await lab.log.append(values, key: "todo", to: partition)
            try await lab.reach(node, partition, seqs.last!)
            node.close()
        }
        let lines = try lab.reader(partition).lines(of: todo, after: .none)
        #expect(lines.seq == 199)
        #expect(try lines.text == foldOfLog(lab.log, todo, to: 199).lines)
    }

    @Test("streams that do not fit in memory are read from the file when they are written to again")
    func eviction() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.cachedBytes = 4_000
        let node = try lab.node()
        defer { node.close() }
        var writers = (0..<6).map { Writer(seed: UInt64($0)) }
        for seq in Int64(0)..<240 {
            let stream = Int(seq % 6)
            let value = writers[stream].event(at: seq)
            try await lab.log.append([value], key: "s\(stream)", to: 0)
        }
        try await lab.reach(node, 0, 239)
        for stream in 0..<6 {
            let name = StreamName("s\(stream)")!
            #expect(try lab.reader(0).lines(of: name, after: .none).text == foldOfLog(lab.log, name, to: 239).lines)
        }
    }

    @Test("a stream without events has an empty snapshot, valid up to the node's position")
    func emptyStream() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<10).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        try await lab.reach(node, 0, 9)
        let lines = try lab.reader(0).lines(of: StreamName("nobody")!, after: .none)
        #expect(lines.seq == 9)
        #expect(try lines.text.hasSuffix(#"{"count":0,"digest":"#) == false)
        #expect(try lines.text.split(separator: "\n").count == 2)
    }

    @Test("the index has every event of a stream by seq, across chunks")
    func index() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        var writers = (0..<3).map { Writer(seed: UInt64($0)) }
        var values: [[String]] = [[], [], []]
        for seq in 0..<90 {
            let value = writers[seq % 3].event(at: Int64(seq))
            values[seq % 3].append(value)
            try await lab.log.append([value], key: "s\(seq % 3)", to: 0)
        }
        try await lab.reach(node, 0, 89)
        for stream in 0..<3 {
            let name = StreamName("s\(stream)")!
            let expected = (5...89).filter { $0 % 3 == stream }.map { (seq: Int64($0), value: values[stream][$0 / 3]) }
            for limit in [1, 7, 1000] {
                let page = try lab.reader(0).page(of: name, after: 4, limit: limit).chunk
                let events = expected.prefix(limit).map { #"{"seq":\#($0.seq),"# + $0.value.dropFirst() }
                #expect(String(decoding: page.body, as: UTF8.self) == events.joined(separator: ","))
                #expect(page.from == 5)
                #expect(page.to == (limit < expected.count ? expected[limit].seq - 1 : 89))
            }
        }
    }

    @Test("a range from the index has the barriers of its partition, also of a stream without events")
    func barriersInTheIndex() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        var writer = Writer(seed: 3)
        let open = #"{"open":true,"type":"barrier"}"#
        var values: [(seq: Seq, value: String)] = []
        for seq in 0..<60 {
            let isBarrier = [0, 17, 18, 40, 59].contains(seq)
            values.append((Seq(seq), isBarrier ? open : writer.event(at: Seq(seq))))
            try await lab.log.append([values[seq].value], key: isBarrier ? "~reel" : "todo", to: 0)
        }
        try await lab.reach(node, 0, 59)
        for (name, all) in [("todo", values), ("nobody", values.filter { $0.value == open })] {
            for limit in [1, 2, 7, 1_000] {
                var found: [String] = []
                var after = Seq.none
                while after < 59 {
                    let page = try lab.reader(0).page(of: StreamName(name)!, after: after, limit: limit).chunk
                    try #require(page.from == after + 1 && page.to > after && page.count <= limit)
                    if page.count > 0 { found.append(String(decoding: page.body, as: UTF8.self)) }
                    after = page.to
                }
                let expected = all.map { #"{"seq":\#($0.seq),"# + $0.value.dropFirst() }
                #expect(found.joined(separator: ",") == expected.joined(separator: ","), "\(name), \(limit)")
            }
        }
    }

    @Test("the file of another epoch is left as it is, neither mixed nor deleted")
    func anotherEpoch() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<10).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 9)
        node.close()
        let other = try MemoryLog(epoch: Epoch(0x77), partitions: 1)
        let value = Writer(seed: 4).first
        try await other.append([value], key: "todo", to: 0)
        let second = try SnapshotNode(
            log: other,
            settings: lab.settings,
            logger: Logger(threshold: .error),
            metrics: Metrics()
        )
        try await eventually("the new epoch is folded") { second.positions[0] == 0 }
        second.close()
        let old = try Connection(path: lab.path(0), mode: .readWrite)
        #expect(try old.integer("SELECT value FROM meta WHERE name = 'next'") == 10, "its epoch did not end")
    }

    @Test("a node finds a damaged row by the digest, puts the file aside and rebuilds the state")
    func damagedRow() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<50).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 49)
        node.close()
        let file = try Connection(path: lab.path(0), mode: .readWrite)
        try file.execute("DELETE FROM object WHERE key = (SELECT key FROM object LIMIT 1)")
        let second = try lab.node()
        defer { second.close() }
        try await lab.log.append([writer.event(at: 50)], key: "todo", to: 0)
        try await eventually("a file put aside") {
            FileManager.default.fileExists(atPath: lab.path(0) + ".aside-0")
        }
        try await lab.reach(second, 0, 50)
        let lines = try lab.reader(0).lines(of: todo, after: .none)
        #expect(try lines.text == foldOfLog(lab.log, todo, to: 50).lines)
    }

    @Test("a file that is no database is put aside")
    func noDatabase() async throws {
        let lab = try Lab(partitions: 1)
        try Data("this is no database, though it is long enough to be read as one".utf8 + Data(count: 4096))
            .write(to: URL(fileURLWithPath: lab.path(0)))
        var writer = Writer(seed: 3)
        try await lab.log.append([writer.event(at: 0)], key: "todo", to: 0)
        let node = try lab.node()
        defer { node.close() }
        try await lab.reach(node, 0, 0)
    }

    @Test("two nodes cannot have one folder")
    func folderInUse() throws {
        let lab = try Lab()
        let node = try lab.node()
        defer { node.close() }
        #expect(throws: SnapshotError.self) { try lab.node() }
    }

    @Test("a void record is covered and changes nothing")
    func voidRecord() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        var writer = Writer(seed: 3)
        try await lab.log.append(
            [writer.event(at: 0), "{ not canonical }", writer.event(at: 2)],
            key: "todo",
            to: 0
        )
        try await lab.log.append(["{}"], key: "~nobody", to: 0)
        try await lab.reach(node, 0, 3)
        let lines = try lab.reader(0).lines(of: todo, after: .none)
        #expect(lines.seq == 3)
        #expect(try lines.text == foldOfLog(lab.log, todo, to: 3).lines)
    }

    @Test("a tail that leaves seqs out is not believed, and what it left out is read") func skippedSeqs() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<9).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try SnapshotNode(
            log: SkippingLog(lab.log, firstTailFrom: 4),
            settings: SnapshotSettings(folder: lab.folder.path),
            logger: Logger { _ in },
            metrics: Metrics()
        )
        defer { node.close() }
        try await lab.reach(node, 0, 8)
        #expect(try lab.reader(0).lines(of: todo, after: .none).text == foldOfLog(lab.log, todo, to: 8).lines)
    }

    @Test("a node stops before an unknown barrier and reports it")
    func unknownBarrier() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        var writer = Writer(seed: 3)
        try await lab.log.append([writer.event(at: 0)], key: "todo", to: 0)
        try await lab.reach(node, 0, 0)
        try await lab.log.append([#"{"fold":2,"type":"barrier"}"#], key: "~reel", to: 0)
        try await lab.log.append([writer.event(at: 2)], key: "todo", to: 0)
        try await eventually("the node says that it stopped") { node.problems.contains { $0.contains("barrier") } }
        #expect(node.problems.first?.hasPrefix("partition 0: internal: ") == true, "\(node.problems)")
        #expect(!node.health.isReady)
        #expect(node.logState == .ok, "nothing is wrong with the log")
        #expect(node.positions[0] == 0)
    }

    @Test("a node folds the records before an unknown barrier, also in the same batch and after a restart")
    func beforeAnUnknownBarrier() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.batchEvents = 100
        var writer = Writer(seed: 3)
        try await lab.log.append((0..<5).map { writer.event(at: $0) }, key: "todo", to: 0)
        lab.log.leaveHole(0)
        try await lab.log.append([#"{"fold":2,"type":"barrier"}"#], key: "~reel", to: 0)
        try await lab.log.append([writer.event(at: 7)], key: "todo", to: 0)
        for _ in 0..<2 {
            let node = try lab.node()
            defer { node.close() }
            try await eventually("the node says that it stopped") { node.problems.contains { $0.contains("barrier") } }
            #expect(node.positions[0] == 5)
            #expect(try lab.reader(0).lines(of: todo, after: .none).text == foldOfLog(lab.log, todo, to: 5).lines)
        }
    }
}

extension Writer {
    /// The first event of a new writer.
    var first: String {
        var writer = self
        return writer.event(at: 0)
    }
}
