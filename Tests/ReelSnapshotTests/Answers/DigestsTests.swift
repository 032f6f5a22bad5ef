import Foundation
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelCore
@testable import ReelSnapshot

/// The digests of many streams in one answer.
@Suite(.timeLimit(.minutes(5))) struct DigestsTests {
    private func insert(_ id: String, op: Op = 0) -> String {
        EventText.logged("insert", StoredFile.site, op, model: "m", id: id, fields: #"{"a":12}"#).text
    }

    private func held(_ name: String, _ seq: Seq = .none) throws -> DigestsRequest.HeldState {
        DigestsRequest.HeldState(stream: try #require(StreamName(name)), seq: seq)
    }

    private func ask(
        _ node: SnapshotNode,
        _ streams: DigestsRequest.HeldState...,
        readable: [StreamPattern]? = nil,
        for access: Access = Access(nil)
    ) -> [StreamDigest] {
        node.digests(of: DigestsRequest(of: streams, epoch: node.log.epoch), readable: readable, access)
    }

    private func code(_ digest: StreamDigest) -> ErrorCode? {
        if case .failure(let problem) = digest.state { problem.code } else { nil }
    }

    @Test("a stream has the digest of its snapshot at every seq, also of other streams' events and of none")
    func digestsOfSnapshots() async throws {
        let lab = try Lab()
        let node = try lab.node()
        defer { node.close() }
        var writers = [Writer(seed: TestSeed.value), Writer(seed: TestSeed.value &+ 1)]
        let names = ["todo", "notes", "never"].map { StreamName($0)! }
        for round in 0..<12 {
            let name = names[round % 2]
            let partition = name.partition(of: 2)
            let next = try lab.log.bounds(partition).last + 1
            let values = (0..<9).map { writers[round % 2].event(at: next + Int64($0)) }
            let seqs = try await lab.log.append(values, key: name.description, to: partition)
            try await lab.reach(node, partition, seqs.last!)
            let digests = ask(node, try held("todo"), try held("notes", 2), try held("never"))
            #expect(digests.map(\.stream) == names)
            for digest in digests where code(digest) != .nodeBehind {
                let state = try digest.state.get()
                let partition = digest.stream.partition(of: 2)
                let last = try lab.log.bounds(partition).last
                var fold = try foldOfLog(lab.log, digest.stream, to: last)
                let right = StreamDigest.State(
                    partition: partition,
                    seq: last,
                    consumed: fold.consumed,
                    digest: fold.digest(),
                    next: nil
                )
                #expect(state == right)
            }
        }
    }

    @Test("a stream that waits for its turn has the digest of the seq up to which it is written")
    func waiting() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.turn = .zero
        var writer = Writer(seed: TestSeed.value)
        try await lab.log.append((0..<30).map { writer.event(at: $0) }, key: "todo", to: 0)
        try await lab.log.append([insert("1")], key: "quick", to: 0)
        let folder = try lab.folder(0, SnapshotFile(path: lab.path(0), identity: lab.identity(0)))
        let batch = try lab.log.read(0, from: 0, to: .max, bytes: 1 << 20)
        _ = try folder.fold(batch.entries[...], of: batch, upTo: batch.seqs.upperBound)
        var seqs: Set<Seq> = []
        while folder.waitingCount > 0 {
            _ = try folder.foldWaiting()
            for held in try [held("todo"), held("quick")] {
                let state = try lab.reader(0).digests(of: [held], goal: .none)[0].get()
                var fold = try foldOfLog(lab.log, held.stream, to: state.seq)
                #expect(try state.digest == fold.digest() && state.seq == lab.reader(0).seq(of: held.stream))
                seqs.insert(state.seq)
            }
        }
        #expect(seqs.count > 2 && seqs.contains(30), "\(seqs)")
    }

    @Test("a client ahead of the node gets `node_behind` for that stream alone")
    func behind() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([insert("1"), insert("2", op: 1)], key: "todo", to: 0)
        try await lab.reach(node, 0, 1)
        let digests = ask(node, try held("todo", 1), try held("notes", 2))
        #expect(try digests[0].state.get().seq == 1)
        guard case .failure(let problem) = digests[1].state else {
            Issue.record("found a digest as of a seq that the node has not folded")
            return
        }
        #expect(problem.code == .nodeBehind && problem.seq == 1 && problem.goal == 2 && problem.retryMs == 1_000)
        let json = String(decoding: StreamDigest.body(digests, of: lab.log.epoch), as: UTF8.self)
        let digest = Hex64.text(try digests[0].state.get().digest)
        #expect(
            json == #"{"epoch":"\#(lab.log.epoch)","streams":[{"stream":"todo","partition":0,"seq":1,"consumed":2,"#
                + #""digest":"\#(digest)"},{"stream":"notes","error":{"code":"node_behind","#
                + #""detail":"\#(problem.detail)","retry_ms":1000,"seq":1,"goal":2}}]}"#
        )
    }

    @Test("each stream that the token does not give is `forbidden`, also if only a gateway reports what it gives")
    func rights() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([insert("1")], key: "todo", to: 0)
        try await lab.reach(node, 0, 0)
        let todo = try #require(StreamPattern("todo*"))
        let grant = TokenGrant(subject: "ann", expiresAt: 9_999_999_999, read: [todo], publish: [todo])
        for (readable, access) in [([todo], Access(nil)), (nil, Access(grant))] as [([StreamPattern]?, Access)] {
            let digests = ask(node, try held("notes"), try held("todo"), readable: readable, for: access)
            #expect(digests.map(code) == [.forbidden, nil])
        }
    }

    @Test("a state from below the horizon is `truncated`, as its delta is")
    func horizon() async throws {
        let stored = try await StoredFile()
        let marks = (0..<Limits.marks).map { Seq(30 + $0) }
        var fold = try foldOfLog(stored.lab.log, StoredFile.todo, to: 89)
        (fold.consumed, fold.marks) = (Int64(Limits.marks) * Limits.markEvery, marks)
        var head: [UInt8] = []
        fold.writeHead(to: &head)
        let file = try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
        let row = try file.connection.prepare("SELECT id, event, sites FROM stream WHERE name = 'todo'")
        try #require(try row.step())
        let (id, event, sites) = (row.integer(0), row.integer(1), Int(row.integer(2)))
        row.reset()
        try head.withUnsafeBytes {
            let name = StoredFile.todo
            try file.setStream(id, name: name, head: $0, digest: 7, sites: sites, lastEvent: event, figures: nil)
        }
        let found = try stored.reader.digests(
            of: [held("todo", 29), held("todo", 30), held("todo"), held("notes", 29)],
            goal: 89
        )
        #expect(throws: Problem.self) { try found[0].get() }
        if case .failure(let problem) = found[0] { #expect(problem.code == .truncated) }
        #expect(try found[1].get().digest == 7 && found[1].get().consumed == fold.consumed)
        #expect(try found[2].get().digest == 7, "a client without a state asks for a snapshot")
        #expect(try found[3].get().seq == 89)
    }

    @Test("a digest tells the epoch that follows once the end of this one is folded")
    func ended() async throws {
        let lab = try Lab(partitions: 1)
        let node = try lab.node()
        defer { node.close() }
        try await lab.log.append([insert("1")], key: "todo", to: 0)
        try await lab.log.append([#"{"end":"00000000000000ab","type":"barrier"}"#], key: "~reel", to: 0)
        try await lab.reach(node, 0, 1)
        let digests = ask(node, try held("todo", 0), try held("never", 0))
        for digest in digests { #expect(try digest.state.get().next == Epoch(0xab)) }
        let json = String(decoding: StreamDigest.body(digests, of: lab.log.epoch), as: UTF8.self)
        #expect(json.hasSuffix(#","next":"00000000000000ab"}]}"#), "\(json)")
    }

    @Test("a damaged row of a stream is found, and no digest is read from it")
    func damaged() async throws {
        let stored = try await StoredFile()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        try file.execute("UPDATE stream SET digest = digest + 1 WHERE name = 'todo'")
        #expect(throws: StateReader.Damage.self) { try stored.reader.digests(of: [held("todo")], goal: 0) }
        #expect(try stored.reader.digests(of: [held("notes")], goal: 0).count == 1)
        try file.execute("UPDATE stream SET name = 'tod' WHERE name = 'todo'")
        #expect(throws: StateReader.Damage.self) { try stored.reader.digests(of: [held("todo")], goal: 0) }
    }

    @Test("1,000 digests out of 10,000 streams are read in bounded time")
    func many() async throws {
        var lab = try Lab(partitions: 4)
        lab.settings.batchEvents = 4_096
        let node = try lab.node()
        defer { node.close() }
        let all = (0..<10_000).map { "stream-\($0)" }
        try await lab.fold(insert("1"), into: all, on: node)
        let streams = try stride(from: 0, to: 10_000, by: 10).map { try held(all[$0]) }
        let request = DigestsRequest(of: streams, epoch: lab.log.epoch)
        let start = ContinuousClock.now
        let digests = node.digests(of: request, readable: nil, Access(nil))
        print("MEASURED: 1,000 digests out of 10,000 streams in \(ContinuousClock.now - start)")
        #expect(digests.allSatisfy { code($0) == nil })
        print("MEASURED: \(StreamDigest.body(digests, of: lab.log.epoch).count) bytes")
    }
}
