import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSQLite
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests that the streams of a partition are folded in turns: a slow one waits, and the others continue.
@Suite(.timeLimit(.minutes(5)))
struct FoldTurnsTests {
    private static let names = ["todo", "notes", "quick"]

    /// Returns a partition whose streams fold one event per turn, because each turn is over immediately.
    private func lab() throws -> Lab {
        var lab = try Lab(partitions: 1)
        lab.settings.turn = .zero
        return lab
    }

    private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

    private func open(_ lab: Lab) throws -> PartitionProjector {
        try lab.folder(0, SnapshotFile(path: lab.path(0), identity: lab.identity(0)))
    }

    private func fold(_ lab: Lab, from next: Seq, with folder: PartitionProjector) throws {
        let batch = try lab.log.read(0, from: next, to: .max, bytes: 1 << 20)
        _ = try folder.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
    }

    /// Appends `count` events of streams that a seed chooses, with barriers that retire sites between them.
    private func fill(_ log: MemoryLog, _ count: Int, seed: UInt64) async throws {
        var numbers = SeededNumbers(seed)
        var writers = Self.names.indices.map { Writer(seed: seed &+ UInt64($0)) }
        for seq in 0..<Seq(count) {
            // Most events belong to the first stream.
            let index = max(0, Int.random(in: -4..<3, using: &numbers))
            if seq % 40 == 39 {
                let retire = #"{"retire":{"before":\#(seq - 20),"stream":"\#(Self.names[index])"},"type":"barrier"}"#
                try await log.append([retire], key: "~reel", to: 0)
            } else {
                try await log.append([writers[index].event(at: seq)], key: Self.names[index], to: 0)
            }
        }
    }

    @Test("a stream that has used its turn waits, and the others are folded beyond it")
    func othersGoOn() async throws {
        let lab = try lab()
        var writers = [Writer(seed: 1), Writer(seed: 2)]
        try await lab.log.append((0..<50).map { writers[0].event(at: $0) }, key: "todo", to: 0)
        try await lab.log.append([writers[1].event(at: 50)], key: "quick", to: 0)
        let folder = try open(lab)
        try fold(lab, from: 0, with: folder)
        let (todo, quick) = (try name("todo"), try name("quick"))
        #expect(folder.floor == 0 && folder.next == 51 && folder.waitingCount == 51)
        #expect(folder.waitingSeqs == [todo: 0, quick: 50])
        #expect(try lab.reader(0).seq(of: todo) == -1 && lab.reader(0).seq(of: quick) == 49)
        var turns = 0
        while folder.waitingSeqs[quick] != nil {
            _ = try folder.foldWaiting()
            turns += 1
        }
        #expect(turns <= 2)
        let first = folder.floor - 1
        #expect(first < 5 && folder.waitingSeqs == [todo: first + 1])
        #expect(try lab.reader(0).seq(of: todo) == first && lab.reader(0).seq(of: quick) == 50)
        var late = lab.reader(0)
        late.seqMin = 50
        #expect(try late.lines(of: quick, after: .none).seq == 50)
        #expect(throws: Problem.self) { try late.lines(of: todo, after: .none) }
        #expect(try lab.reader(0).page(of: todo, after: .none, limit: 100).head == first)
        while folder.waitingCount > 0 {
            _ = try folder.foldWaiting()
            turns += 1
        }
        #expect(turns >= 49 && folder.floor == 51)
        let lines = try late.lines(of: todo, after: .none)
        #expect(try lines.text == foldOfLog(lab.log, todo, to: 50).lines)
        #expect(try late.page(of: todo, after: .none, limit: 100).chunk.count == 50)
    }

    @Test("a stream that takes long to be written is not written with each of its events while more wait")
    func sharedWriting() async throws {
        let lab = try lab()
        let site = "00000000-0000-4000-8000-000000000001"
        func event(_ op: Int, _ fields: String) -> String {
            EventText.logged("insert", site, op, model: "m", id: "a", fields: fields).text
        }
        let text = String(repeating: "x", count: 900_000)
        try await lab.log.append([event(0, #"{"t":"\#(text)"}"#)], key: "todo", to: 0)
        try await lab.log.append((1...500).map { event($0, #"{"n":\#($0)}"#) }, key: "todo", to: 0)
        let folder = try open(lab)
        try fold(lab, from: 0, with: folder)
        var (turns, writes) = (0, 0)
        while folder.waitingCount > 0 {
            let before = folder.floor
            _ = try folder.foldWaiting()
            turns += 1
            if folder.floor > before { writes += 1 }
        }
        #expect(turns >= 500 && writes > 1 && writes < turns / 2, "\(writes) writes in \(turns) turns")
    }

    @Test("every folded event is counted, also if it is folded and not written in a turn")
    func countsFoldedEvents() async throws {
        let lab = try lab()
        let metrics = Metrics()
        let node = try lab.node(metrics: metrics)
        defer { node.close() }
        try await eventually("it has begun") { node.keepers[0].now.isVerified }
        let site = "00000000-0000-4000-8000-000000000001"
        let text = String(repeating: "x", count: 900_000)
        let events = (0...300).map { op in
            let fields = op == 0 ? #"{"t":"\#(text)"}"# : #"{"n":\#(op)}"#
            return EventText.logged("insert", site, op, model: "m", id: "a", fields: fields).text
        }
        try await lab.log.append(events, key: "todo", to: 0)
        try await lab.reach(node, 0, 300)
        try await eventually("all are counted") { metrics.text().contains("reel_snapshot_events_total 301\n") }
    }

    @Test("each answer is true of its stream's seq, however turns, restarts and reads mix", arguments: 1...8)
    func anyMix(seed: UInt64) async throws {
        var lab = try lab()
        lab.settings.cachedBytes = 8_000
        try await fill(lab.log, 150, seed: seed)
        var numbers = SeededNumbers(seed)
        var folder = try open(lab)
        while folder.next < 150 || folder.waitingCount > 0 {
            switch Int.random(in: 0..<6, using: &numbers) {
            case 0: folder = try open(lab)
            case 1...3 where folder.next < 150:
                let batch = try lab.log.read(
                    0,
                    from: folder.next,
                    to: min(149, folder.next + Seq.random(in: 0..<30, using: &numbers)),
                    bytes: 1 << 20
                )
                _ = try folder.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
            default: _ = try folder.foldWaiting()
            }
            for text in Self.names {
                let stream = try name(text)
                let lines = try lab.reader(0).lines(of: stream, after: .none)
                #expect(lines.seq == folder.waitingSeqs[stream].map { $0 - 1 } ?? folder.next - 1)
                guard lines.seq >= 0 else { continue }
                #expect(try lines.text == foldOfLog(lab.log, stream, to: lines.seq).lines)
            }
        }
        let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
        #expect(try archive.state(of: 0)?.fold.next == 150)
    }

    @Test("a new epoch that begins with a file in which streams wait folds the rest of each stream from the log")
    func archive() async throws {
        let lab = try lab()
        try await fill(lab.log, 200, seed: 7)
        let folder = try open(lab)
        try fold(lab, from: 0, with: folder)
        #expect(folder.waitingCount > 50)
        let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
        var state = try #require(try archive.state(of: 0)).fold
        #expect(state.next == folder.floor)
        #expect(archive.furthest(0) == 199, "a log that ends before this has lost what was read")
        let batch = try lab.log.read(0, from: state.next, to: .max, bytes: 1 << 20)
        for entry in batch.entries {
            batch.withRecord(entry) { key, value in _ = state.read(key: key, value: value, seq: entry.seq) }
        }
        for text in Self.names {
            let stream = try name(text)
            var fold = try #require(state.streams[stream])
            fold.advance(to: 199)
            #expect(try fold.lines == foldOfLog(lab.log, stream, to: 199).lines)
        }
    }

    @Test("a node answers about a stream once that stream is folded, before and after a restart")
    func node() async throws {
        var lab = try lab()
        lab.settings.batchEvents = 400
        lab.settings.queuedEvents = 100
        for run in 1...2 {
            let node = try lab.node()
            defer { node.close() }
            try await eventually("run \(run) has begun") { node.keepers[0].now.isVerified }
            try await fill(lab.log, 150, seed: UInt64(run))
            let last = Seq(150 * run - 1)
            try await eventually("run \(run) reads all") { node.keepers[0].now.readSeq == last }
            for text in Self.names {
                let stream = try name(text)
                try await eventually("\(text) is folded") { node.keepers[0].now.seq(of: stream) == last }
                let lines = try lab.reader(0).lines(of: stream, after: .none)
                #expect(try lines.text == foldOfLog(lab.log, stream, to: lines.seq).lines)
            }
            try await lab.reach(node, 0, last)
            let status = node.keepers[0].now
            #expect(status.waiting.isEmpty && status.waitingCount == 0 && status.problem == nil)
        }
    }

    @Test("a barrier that waits as the last record of the log is folded and noted, also after a restart")
    func lastBarrier() async throws {
        let lab = try lab()
        var writer = Writer(seed: 1)
        try await lab.log.append((0..<2).map { writer.event(at: $0) }, key: "todo", to: 0)
        try await lab.log.append([#"{"retire":{"before":0,"stream":"todo"},"type":"barrier"}"#], key: "~reel", to: 0)
        do {
            let folder = try open(lab)
            try fold(lab, from: 0, with: folder)
            _ = try folder.foldWaiting()
            #expect(folder.floor == 2 && folder.waitingCount == 1, "only the barrier waits")
        }
        let node = try lab.node()
        defer { node.close() }
        try await lab.reach(node, 0, 2)
        #expect(node.keepers[0].now.waitingCount == 0)
        #expect(node.keepers[0].now.seq(of: try name("todo")) == 2)
    }

    @Test("small events on large objects use up a turn, since the fold writes the objects again")
    func largeRows() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.turn = .seconds(1)
        let text = String(repeating: "x", count: 700_000)
        let site = "00000000-0000-4000-8000-000000000001"
        let inserts = (0..<40).map { id in
            EventText.logged("insert", site, id, model: "m", id: "\(id)", fields: #"{"t":"\#(text)"}"#).text
        }
        let updates = (0..<40).map { id in
            EventText.logged("update", site, id + 40, model: "m", id: "\(id)", fields: #"{"x":1}"#).text
        }
        try await lab.log.append(inserts + updates, key: "todo", to: 0)
        let folder = try open(lab)
        folder.turn = .seconds(1_000)
        let batch = try lab.log.read(0, from: 0, to: 39, bytes: 1 << 30)
        _ = try folder.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
        // The fold counts 80 ms for writing 20 MB.
        folder.turn = .milliseconds(60)
        let rest = try lab.log.read(0, from: 40, to: 79, bytes: 1 << 30)
        _ = try folder.fold(rest.entries[...], of: rest, upTo: rest.seqs.upperBound)
        #expect(folder.next == 80 && folder.waitingCount >= 15)
    }

    @Test("a question waits for its own stream: not for a slower one, and no shorter than its own is folded")
    func waits() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let ended = Mutex<[String]>([])
        let (todo, quick) = (try name("todo"), try name("quick"))
        let waits = FoldWaiters()
        func onLoop(_ body: @escaping @Sendable () -> Void) async {
            await withCheckedContinuation { continuation in
                loop.execute {
                    body()
                    continuation.resume()
                }
            }
        }
        await onLoop {
            for (stream, seq) in [(todo, Seq(5)), (quick, 5), (todo, 9), (quick, 30)] {
                waits.reach(seq, of: stream, withinMs: 1_000_000, on: loop, isFolded: { false }) {
                    ended.withLock { $0.append("\(stream) \(seq)") }
                }
            }
        }
        func told(_ seq: Seq, read: Seq, waiting: [StreamName: Seq]) async -> [String] {
            var status = PartitionSupervisor.Status()
            (status.seq, status.readSeq, status.waiting) = (seq, read, waiting)
            waits.folded(to: status)
            await onLoop {}
            return ended.withLock { ended in
                defer { ended = [] }
                return ended
            }
        }
        #expect(await told(2, read: 20, waiting: [todo: 3]) == ["quick 5"])
        #expect(await told(5, read: 21, waiting: [todo: 6]) == ["todo 5"])
        #expect(await told(5, read: 22, waiting: [todo: 6]) == [])
        #expect(await told(25, read: 25, waiting: [:]) == ["todo 9"])
        #expect(await told(30, read: 30, waiting: [:]) == ["quick 30"])
    }
}
