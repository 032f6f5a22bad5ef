import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests HTTP answers of a snapshot node that cannot answer a question, or cannot answer it yet.
@Suite(.timeLimit(.minutes(15))) struct StateRequestTests {
    private let todo = "/v1/streams/todo"

    /// Runs the body with a node on the lab's log, and with a function that sends it GET requests.
    private func serving(
        _ lab: Lab,
        number: Int = 0,
        reachMs: Int64 = 20,
        _ body: (
            _ get: (_ target: String, _ headers: HTTPHeaders) async throws -> (status: Int, text: String)
        ) async throws -> Void
    ) async throws {
        var settings = lab.settings
        settings.reachMs = reachMs
        let node = try SnapshotServer(
            log: lab.log,
            number: number,
            settings: settings,
            common: .forTests,
            logger: Logger(threshold: .error)
        )
        let loop = try EventLoop()
        let http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        let (host, port) = (node.address.host, node.address.port)
        do {
            try await body { target, headers in
                var request = HTTPClientRequest("GET", host: host, port: port, target: target)
                (request.headers, request.timeout) = (headers, .seconds(1_000))
                let answer = try await http.fetch(request)
                return (answer.status, String(decoding: answer.body, as: UTF8.self))
            }
        } catch {
            Issue.record(error)
        }
        for _ in 0..<2 { node.end.begin() }
        await node.waitUntilEnded()
        loop.stop()
        loop.join()
    }

    @Test("a client that holds the node's state and requests a later seq gets `node_behind`")
    func notYetThere() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 5)
        try await lab.log.append([writer.event(at: 0)], key: "todo", to: 0)
        try await serving(lab) { get in
            let held: HTTPHeaders = ["if-none-match": "\"\(lab.log.epoch):0\""]
            var there = (status: 0, text: "")
            let first = todo + "/snapshot?epoch=\(lab.log.epoch)&min_seq=0"
            while there.status != 304 { there = try await get(first, held) }
            for target in ["/snapshot?", "/delta?after=0&"] {
                let answer = try await get(todo + target + "epoch=\(lab.log.epoch)&min_seq=5", held)
                #expect(answer.status == 503 && answer.text.contains("node_behind"), "\(target): \(answer)")
            }
        }
    }

    @Test("a client that requests another epoch gets `epoch_changed` at once, at any position")
    func answersEpochChanged() async throws {
        let lab = try Lab(partitions: 1)
        try await serving(lab, reachMs: 100_000_000) { get in
            let answer = try await get(todo + "/snapshot?epoch=0000000000000007&min_seq=99", [:])
            #expect(answer.status == 409 && answer.text.contains("epoch_changed"), "\(answer)")
        }
    }

    @Test("a node answers nothing on a successor log before its seeds are folded, and no range begins within them")
    func waitsForSeeds() async throws {
        let lab = try Lab(partitions: 1)
        try await serving(lab, number: 1) { get in
            for target in ["/snapshot", "/head", "/events", "/objects/m/o1"] {
                let answer = try await get(todo + target, [:])
                #expect(answer.status == 503 && answer.text.contains("node_behind"), "\(target): \(answer)")
            }
            let site = #"{"line":{"end":-1,"op":4,"site":"00000000-0000-4000-8000-000000000001"},"type":"seed"}"#
            let field = #"["Milk","00000000-0000-4000-8000-000000000001"]"#
            let object = #"{"line":{"fields":{"t":\#(field)},"object":["m","o1"]},"type":"seed"}"#
            try await lab.log.append([site, object], key: "todo", to: 0)
            try await lab.log.append([#"{"open":true,"type":"barrier"}"#], key: "~reel", to: 0)
            var head = (status: 503, text: "")
            while head.status == 503 { head = try await get(todo + "/head", [:]) }
            #expect(head.text.contains(#""first":2,"head":2"#), "\(head)")
            #expect(try await get(todo + "/objects/m/o1", [:]).status == 200)
            for target in ["/events", "/events?epoch=\(lab.log.epoch)&after=0"] {
                let answer = try await get(todo + target, [:])
                #expect(answer.status == 410 && answer.text.contains(#""first":2"#), "\(target): \(answer)")
            }
            #expect(try await get(todo + "/events?epoch=\(lab.log.epoch)&after=1", [:]).status == 200)
            lab.log.lose(0, LogError(.logUnavailable, "away"))
            head = try await get(todo + "/head", [:])
            #expect(head.text.contains(#""first":2,"head":2"#), "without the log, what its own index has: \(head)")
        }
    }

    @Test("a log that was rolled back has no head")
    func aheadOfLog() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 5)
        try await lab.log.append((0..<9).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 8)
        node.close()
        lab.log.rollBack(0, to: 4)
        try await serving(lab) { get in
            var head = (status: 503, text: "node_behind")
            while head.text.contains("node_behind") { head = try await get(todo + "/head", [:]) }
            #expect(head.text.contains("ahead_of_log"), "\(head)")
        }
    }

    @Test("the log waits while its large records fill the queue, and continues when they are taken")
    func largeRecords() async throws {
        let log = try MemoryLog(partitions: 1)
        try await log.append((0..<4).map { String(repeating: "\($0)", count: 100) }, key: "todo", to: 0)
        let mailbox = BoundedBatchQueue(records: 1_000, bytes: 150)
        let batches = try (0..<4).map { try log.read(0, from: $0, to: $0, bytes: 1) }
        let received = Atomic(0)
        let thread = try LogThread("sends") {
            for batch in batches {
                mailbox.received(batch)
                received.add(1, ordering: .relaxed)
            }
        }
        for count in [2, 4] {
            try await eventually("\(count) batches are there") { received.load(ordering: .relaxed) >= count }
            guard case .batches(let taken) = mailbox.take() else {
                Issue.record("found no batches")
                break
            }
            #expect(taken.count == 2)
        }
        thread.join()
    }

    @Test("a node that reads a flipped byte says `node_behind`, puts the file aside and rebuilds it")
    func healsFlippedByte() async throws {
        let stored = try await StoredFile()
        let right = try stored.answers()
        let title = try #require(stored.bytes.range(of: Data("Task 7777".utf8)))
        try stored.write(UInt8(ascii: "6"), at: title.lowerBound + 5)
        try await serving(stored.lab) { get in
            let object = todo + "/objects/m/task"
            var texts: [String] = []
            while texts.last?.contains("Task 7777") != true {
                let answer = try await get(object, [:])
                #expect(answer.status == 200 || answer.text.contains("node_behind"), "\(answer)")
                if texts.last != answer.text { texts.append(answer.text) }
            }
            #expect(texts.contains { $0.contains("the snapshot's file is damaged and is made from the log again") })
            #expect(!texts.contains { $0.contains("Task 6777") })
        }
        #expect(FileManager.default.fileExists(atPath: stored.lab.path(0) + ".aside-0"))
        #expect(try stored.answers() == right)
    }
}
