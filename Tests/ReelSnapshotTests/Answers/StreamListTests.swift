import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests the list of streams that a snapshot node returns.
@Suite(.timeLimit(.minutes(5))) struct StreamListTests {
    private func insert(_ id: String, at atMs: Int64 = 1_000, site: String = StoredFile.site, op: Op = 0) -> String {
        EventText.logged("insert", site, op, at: atMs, model: "m", id: id, fields: #"{"a":12}"#).text
    }

    private func question(_ prefix: String = "", after: String = "", limit: Int = 100) -> StreamListRequest {
        var question = StreamListRequest()
        (question.prefix, question.after, question.limit) = (prefix, after, limit)
        return question
    }

    private func token(_ patterns: String...) throws -> Access {
        let read = try patterns.map { try #require(StreamPattern($0)) }
        return Access(TokenGrant(subject: "ann", expiresAt: 9_999_999_999, read: read, publish: []))
    }

    /// Returns the names on all pages of a list, and the number of pages.
    private func names(
        _ node: SnapshotNode,
        _ prefix: String = "",
        limit: Int = 100,
        for access: Access = Access(nil)
    ) throws -> (names: [String], pages: Int) {
        var (names, pages, after) = ([String](), 0, "")
        while true {
            let page = try node.page(
                of: question(prefix, after: after, limit: limit),
                in: question(prefix).ranges(for: access)
            )
            #expect(page.streams.count <= limit)
            names += page.streams.map(\.stream.description)
            pages += 1
            guard let next = page.next else { return (names, pages) }
            #expect(next > after && StreamName(next) != nil, "a page goes on")
            after = next
        }
    }

    private func publish(_ names: [String], to lab: Lab, _ node: SnapshotNode) async throws {
        let byPartition = Dictionary(grouping: names) { StreamName($0)!.partition(of: lab.log.partitions) }
        for (partition, names) in byPartition {
            for name in names { try await lab.log.append([insert("1")], key: name, to: partition) }
        }
        for (partition, names) in byPartition { try await lab.reach(node, partition, Seq(names.count - 1)) }
    }

    @Test("streams come in name order over all partitions, page by page, by prefix and by what the token gives")
    func pages() async throws {
        let lab = try Lab(partitions: 4)
        let node = try lab.node()
        defer { node.close() }
        let all = (0..<40).map { "todo-\($0)" } + ["A", "a", "z", "todo", "_x", "other-1", "other-2"]
        try await publish(all, to: lab, node)
        let sorted = all.sorted()
        for limit in [1, 7, 47, 48, 1_000] {
            let found = try names(node, limit: limit)
            #expect(found.names == sorted && found.pages == (47 + limit - 1) / limit, "\(limit): \(found)")
        }
        #expect(try names(node, "todo-1", limit: 3).names == sorted.filter { $0.hasPrefix("todo-1") })
        #expect(try names(node, "none").names.isEmpty)
        let some = try token("todo-1*", "other-2", "absent", "a", "todo-12")
        let allowed = sorted.filter { $0.hasPrefix("todo-1") || ["other-2", "a"].contains($0) }
        for limit in [1, 2, 100] { #expect(try names(node, limit: limit, for: some).names == allowed) }
        #expect(try names(node, "other-", for: some).names == ["other-2"])
        #expect(try names(node, "z", for: some).names.isEmpty)
        let ranges = [NameRange(prefix: "")]
        for after in ["zzz", "z", String(repeating: "z", count: 128)] {
            let beyond = try node.page(of: question(after: after), in: ranges)
            #expect(beyond.streams.isEmpty && beyond.next == nil)
        }
    }

    @Test("a page of a token with many patterns is bounded, and the pages together are whole")
    func manyPatterns() async throws {
        let lab = try Lab(partitions: 4)
        let node = try lab.node()
        defer { node.close() }
        try await publish(["a0", "p3000", "p5999", "z"], to: lab, node)
        let patterns =
            try (0..<6_000).map { try #require(StreamPattern("p\($0)*")) } + [try #require(StreamPattern("z"))]
        let access = Access(TokenGrant(subject: "ann", expiresAt: 9_999_999_999, read: patterns, publish: []))
        let ranges = try question().ranges(for: access)
        let found = try names(node, for: access)
        #expect(found.names == ["p3000", "p5999", "z"] && ranges.count == 11, "a prefix includes longer ones")
        // None of these patterns is a prefix of another one, so the list cannot drop any.
        let apart =
            try (1_000..<9_000).map { try #require(StreamPattern("p\($0)")) } + [try #require(StreamPattern("z"))]
        let slow = try names(
            node,
            for: Access(TokenGrant(subject: "ann", expiresAt: 9_999_999_999, read: apart, publish: []))
        )
        #expect(slow.names == ["p3000", "p5999", "z"] && slow.pages == 4, "\(slow)")
    }

    @Test("a stream has its figures as of its last event, also after a restart, and a deleted object does not count")
    func figures() async throws {
        let lab = try Lab(partitions: 1)
        var node = try lab.node()
        let other = "00000000-0000-4000-8000-000000000002"
        let delete = EventText.logged("delete", StoredFile.site, 1, base: 1, at: 3_000, model: "m", id: "2").text
        let values = [insert("1"), insert("2", at: 2_000, site: other), delete]
        try await lab.log.append(values, key: "todo", to: 0)
        try await lab.log.append([insert("1", at: 4_000)], key: "else", to: 0)
        try await lab.reach(node, 0, 3)
        // The bytes of the object are `m`, `1` and `{"a":12}`.
        let todo = ListedStream(
            stream: StoredFile.todo,
            partition: 0,
            objects: 1,
            bytes: 10,
            sites: 2,
            seq: 2,
            atMs: 3_000
        )
        func read(_ node: SnapshotNode) throws -> [ListedStream] {
            try node.page(of: question(), in: [NameRange(prefix: "")]).streams
        }
        #expect(try read(node).last == todo && read(node).count == 2)
        node.close()
        node = try lab.node()
        defer { node.close() }
        try await eventually("the node has compared its file") { node.canAnswer(question()) }
        #expect(try read(node).last == todo)
        let fields = #"{"b":true}"#
        let update = EventText.logged("update", StoredFile.site, 2, base: 3, model: "m", id: "1", fields: fields)
        try await lab.log.append([update.text], key: "todo", to: 0)
        try await lab.reach(node, 0, 4)
        var later = todo
        (later.seq, later.atMs, later.bytes) = (4, nil, 19)
        #expect(try read(node).last == later, "an event without a clock has no time")
        let json = String(decoding: ListedStream.body([later], of: lab.log.epoch, next: "todo"), as: UTF8.self)
        #expect(
            json == #"{"epoch":"\#(lab.log.epoch)","streams":[{"stream":"todo","partition":0,"objects":1,"bytes":19,"#
                + #""sites":2,"seq":4,"at":null}],"next":"todo"}"#
        )
    }

    @Test("a node that has not folded all that the log had does not list a part")
    func behind() async throws {
        let stored = try await StoredFile()
        let node = try stored.lab.node()
        node.close()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        try file.execute("UPDATE stream SET objects = objects + 1 WHERE name = 'todo'")
        #expect(throws: StateReader.Damage.self, "the hash of the row covers the figures") {
            try stored.reader.streams(in: [NameRange(prefix: "")], after: "", bound: nil, limit: 10)
        }
        var reader = stored.reader
        reader.seqMin = 90
        #expect(throws: Problem.self) {
            try reader.streams(in: [NameRange(prefix: "n")], after: "", bound: nil, limit: 1)
        }
    }

    /// The time for a page does not grow with the number of streams.
    @Test("a list of 10,000 streams in four partitions is read in pages of bounded time")
    func many() async throws {
        var lab = try Lab(partitions: 4)
        lab.settings.batchEvents = 4_096
        let node = try lab.node()
        defer { node.close() }
        let all = (0..<10_000).map { "stream-\(String($0 + 100_000).dropFirst())" }
        try await lab.fold(insert("1"), into: all, on: node)
        for limit in [100, 1_000] {
            let start = ContinuousClock.now
            let found = try names(node, limit: limit)
            let each = (ContinuousClock.now - start) / found.pages
            #expect(found.names == all)
            print("MEASURED: a page of \(limit) of 10,000 streams in \(each), \(found.pages) pages")
        }
    }
}
