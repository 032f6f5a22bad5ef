import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The waiting events of a device as lines of JSON.
@Suite(.timeLimit(.minutes(5))) struct QueueLinesTests {
    private func lines(_ client: SyncClient) async throws -> [String] {
        var lines: [String] = []
        for try await line in client.queueLines() { lines.append(line) }
        return lines
    }

    private func member(_ name: String, of line: String) throws -> JSONValue? {
        try #require(Array(line.utf8).withUnsafeBytes { JSONValue(parsing: $0) }?.object)[name]
    }

    @Test("each waiting event has a line, for open and for closed streams")
    func everyStream() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.down = ["a"] }
        var client = try network.client(store: .file(path))
        try await client.open("b").publish(.insert("task", id: "1", ["title": "Milk"]))
        try await client.open("b").publish(.delete("task", id: "2"))
        try await client.open("a").publish(.batch([.update("m", id: "1", ["n": 1]), .delete("m", id: "2")]))
        await client.close()
        client = try network.client(store: .file(path))
        try await client.open("c").publish(.update("m", id: "1", operations: ["n": .increment(1)]))
        let expected = [
            #"{"event":{"events":[{"fields":{"n":1},"id":"1","model":"m","type":"update"},"#
                + #"{"id":"2","model":"m","type":"delete"}],"type":"batch"},"number":1,"stream":"a"}"#,
            #"{"event":{"fields":{"title":"Milk"},"id":"1","model":"task","type":"insert"},"number":1,"stream":"b"}"#,
            #"{"event":{"id":"2","model":"task","type":"delete"},"number":2,"stream":"b"}"#,
            #"{"event":{"id":"1","model":"m","ops":{"n":{"inc":1}},"type":"update"},"number":1,"stream":"c"}"#,
        ]
        #expect(try await lines(client) == expected)
        // The lines are the same for open and closed streams.
        for name in ["a", "b"] { try await client.open(name) }
        #expect(try await lines(client) == expected)
        await client.close()
        await #expect(throws: (any Error).self) { try await self.lines(client) }
    }

    @Test("a queue line shows the site and op of a sent event, and the epoch of its seqs")
    func queueLineFields() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["text": "old"])).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent) = (true, true) }
        try await stream.publish(.update("m", id: "0", ["n": 1]))
        try await eventually { (try? await network.on { $0.log.count }) == 2 }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        try await stream.publish(
            .update("m", id: "0", operations: ["text": .splice([TextSplice(at: 3, removing: 0, inserting: "er")])])
        )
        for isOpen in [true, false] {
            let lines = try await lines(client)
            try #require(lines.count == 2)
            let sent = try #require(Site(member("site", of: lines[0])?.string ?? ""))
            let site = try await network.on { network -> Site? in
                var event = ParsedEvent()
                try? network.log[0].withUnsafeBytes { try event.parse($0) }
                return event.site
            }
            #expect(sent == site)
            #expect(try member("op", of: lines[0]) == .number(1) && member("epoch", of: lines[0]) == nil)
            #expect(try member("event", of: lines[0])?.object?["base"] == nil)
            #expect(try member("site", of: lines[1]) == nil && member("op", of: lines[1]) == nil)
            #expect(try member("epoch", of: lines[1]) == .string(Epoch(1).description))
            #expect(try member("event", of: lines[1])?.object?["base"] == .number(0))
            guard isOpen else { break }
            await client.close()
            client = try network.client(store: .file(path))
        }
        stream = try await client.open("s")
        #expect(await stream.pendingCount == 2, "what was taken along stays in the queue")
        await client.close()
    }

    @Test("a gateway accepts each event of a line once the event has a site and an op")
    func taken() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        let stream = try await client.open("s")
        let events: [SyncEvent] = [
            .insert("m", id: "ü\"\\", ["a": ["b": [1, .null, true]]]),
            .update("m", id: "1", ["a": .null], operations: ["b": .change(add: ["x"], remove: [1])]),
            .update(
                "m",
                id: "1",
                operations: ["t": .splice([TextSplice(at: 0, removing: 0, inserting: "\u{1F469}\u{200D}\u{1F467}")])]
            ),
            SyncEvent(.delete("m", id: "2").guarded(["a": -1])),
            .batch([.insert("m", id: "3"), .delete("m", id: "4")]),
        ]
        for event in events { try await stream.publish(event) }
        let lines = try await lines(client)
        #expect(lines.count == events.count)
        for (op, line) in lines.enumerated() {
            let event = try #require(line.firstMatch(of: /^\{(?:"epoch":"[0-9a-f]*",)?"event":(.*),"number":/)).1
            let site = Site(high: 1, low: 2)
            let text = #"{"site":"\#(site)","op":\#(op),"# + event.dropFirst()
            var intake = EventIntake(limit: Limits.value)
            var value: [UInt8] = []
            try Array(text.utf8).withUnsafeBytes {
                try intake.take($0, stamp: .init(by: nil, atMs: 0, base: 0), into: &value)
            }
        }
        await client.close()
    }

    @Test("a long queue is delivered page by page, in order and each event once")
    func pages() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(nodes: [], store: .file(path))
        let stream = try await client.open("s")
        // Neighbouring events change different objects, so that none is merged. Some of the events are large.
        try await withThrowingTaskGroup { group in
            for id in 0..<1_203 {
                let text = String(repeating: "x", count: id % 100 == 0 ? 200_000 : 1)
                group.addTask { try await stream.publish(.insert("m", id: "\(id)", ["text": .string(text)])) }
            }
            try await group.waitForAll()
        }
        let open = try await lines(client)
        await client.close()
        client = try network.client(nodes: [], store: .file(path))
        let closed = try await lines(client)
        #expect(open == closed)
        #expect(try open.map { try member("number", of: $0) } == (1...1_203).map { .number(Double($0)) })
        await client.close()
    }
}
