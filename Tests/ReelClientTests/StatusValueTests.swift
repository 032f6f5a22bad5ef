import Foundation
import ReelCore
import ReelFoundation
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The status of streams, and the values of the public interface.
@Suite(.timeLimit(.minutes(5))) struct StatusValueTests {
    @Test("the status of a stream says what is here, what waits and why")
    func streamStatus() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)")) }
            network.down = ["a"]
        }
        let client = try network.client()
        let stream = try await client.open("s")
        #expect(stream.status.content == .neverSynced && stream.status.connection == .offline)
        #expect(stream.status.upToDateMs == nil && !stream.status.isUpToDate && !client.status.isUpToDate)
        try await stream.publish(.insert("m", id: "own"))
        #expect(stream.status.pendingCount == 1 && client.status.pendingCount == 1)
        guard case .problem(.offline, _)? = stream.status.pending.reason else {
            Issue.record("found \(String(describing: stream.status.pending.reason))")
            return
        }
        #expect(stream.status.pending.sinceMs != nil)
        try await eventually { client.status.offlineSinceMs != nil }
        try await network.on { $0.down = [] }
        try await eventually { stream.status.isUpToDate && stream.status.pendingCount == 0 }
        #expect(stream.status.connection == .live && stream.status.seq == 3)
        #expect(stream.status.upToDateMs != nil && client.status.isUpToDate && client.status.offlineSinceMs == nil)
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        try await eventually { stream.status.connection == .offline }
        #expect(stream.status.content == .upToDate && !stream.status.isUpToDate && stream.status.upToDateMs != nil)
        await client.close()
        #expect(stream.status.connection == .closed && stream.status.seq == 3)
    }

    @Test("a device that starts offline says when it was last up to date")
    func upToDateAfterRestart() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in for id in 0..<3 { network.author(.insert("m", id: "\(id)")) } }
        let first = try network.client(store: .file(path))
        let stream = try await first.open("s")
        try await eventually { stream.status.isUpToDate }
        try await stream.publish(.insert("m", id: "own")).outcome()
        let expected = try #require(stream.status.upToDateMs)
        let quiet = try await first.open("quiet")
        try await eventually { quiet.status.isUpToDate }
        await first.close()
        try await network.on { $0.down = ["a"] }
        let second = try network.client(store: .file(path))
        let reopened = try await second.open("s")
        let found = try #require(reopened.status.upToDateMs)
        #expect(abs(found - expected) < 60_000)
        #expect(try await second.open("quiet").status.upToDateMs != nil)
        #expect(reopened.status.content == .upToDate && reopened.status.seq == 3 && !second.status.isUpToDate)
        await second.close()
    }

    @Test("the statuses begin with the present one, skip for a slow reader, and end with the client")
    func sequence() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let statuses = stream.statuses()
        for await status in statuses where status.isUpToDate { break }
        let reader = Task { () -> StreamStatus? in
            var last: StreamStatus?
            for await status in statuses { last = status }
            return last
        }
        for id in 0..<100 { try await stream.publish(.insert("m", id: "\(id)")) }
        try await eventually { stream.status.pendingCount == 0 }
        await client.close()
        #expect(await reader.value != nil)
        for await status in stream.statuses() { #expect(status.connection == .closed) }
    }

    @Test("a stream that was closed or evicted has the status of one that was never opened")
    func closedStream() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        for isEvicted in [false, true] {
            let stream = try await client.open("s", from: .beginning)
            try await stream.publish(.insert("m", id: "\(isEvicted)")).outcome()
            #expect(stream.status.seq >= 0)
            if isEvicted { try await client.evict("s") } else { await stream.close() }
            #expect(stream.status == StreamStatus())
            #expect(stream.status.content == .neverSynced && stream.status.connection == .closed)
        }
        await client.close()
    }

    @Test("a stream that may not be read has failed, with its code")
    func failed() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.forbidden = [StreamName("s")!] }
        let client = try network.client()
        let stream = try await client.open("s")
        try await eventually { stream.status.connection == .failed(.forbidden) }
        #expect(stream.status.problems.map(\.code) == [.forbidden])
        await client.close()
    }

    @Test("a first state that is arriving has the number of its bytes, and of those that have arrived")
    func loading() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<200 { network.author(.insert("m", id: "\(id)")) }
            network.cuts = [3_000]
            network.cutAnswer = { _ in }
        }
        let client = try network.client()
        let stream = try await client.open("s")
        let length = try await network.on { Int64($0.answer("/v1/streams/s/snapshot").1.count) }
        try await eventually { stream.status.content == .loading(bytes: 3_000, of: length) }
        await client.close()
    }

    @Test("a length that a node has named is neither believed nor added up beyond what numbers hold")
    func namedLength() {
        var progress = LoadProgress()
        progress.received(.head(status: 200, length: 10))
        progress.received(.body(Array(repeating: 0, count: 30)))
        #expect(progress.bytes == 30 && progress.expected == 30)
        progress.received(.head(status: 200, length: 50))
        #expect(progress.expected == 80)
        for length in [Int64.max, nil] {
            progress.received(.head(status: 200, length: length))
            #expect(progress.expected == nil)
        }
        progress.received(.head(status: 200, length: .min))
        #expect(progress.expected == 30)
    }

    // MARK: One sync

    @Test("one sync opens what waits, sends it, reads what is new, and says so")
    func syncOnce() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.down = ["a"] }
        let first = try network.client(store: .file(path))
        try await first.open("s").publish(.insert("m", id: "own"))
        await first.close()
        let second = try network.client(store: .file(path))
        let late = try await second.syncOnce(deadline: .milliseconds(50))
        #expect(!late.isComplete && late.settled == 0 && late.status.pendingCount == 1)
        #expect(late.status.problems.map(\.code) == [.offline])
        try await network.on { network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)")) }
            network.down = []
        }
        let report = try await second.syncOnce(deadline: .seconds(300))
        #expect(report.isComplete && report.settled == 1 && report.status.pendingCount == 0)
        #expect(try await second.open("s").objects("m").count == 4)
        let again = try await second.syncOnce(deadline: .seconds(300))
        #expect(again.isComplete && again.received == 0 && again.settled == 0)
        await second.close()
        await #expect(throws: ReelError.self) { try await second.syncOnce(deadline: .seconds(1)) }
    }

    @Test("one sync ends with the client, and with its task")
    func endsSync() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        try await client.open("s").publish(.insert("m", id: "own"))
        let cancelled = Task { try await client.syncOnce(deadline: .seconds(300)) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let waiting = Task { try await client.syncOnce(deadline: .seconds(300)) }
        await Task.yield()
        await client.close()
        await #expect(throws: ReelError.self) { try await waiting.value }
    }

    // MARK: Values

    @Test("values are coded as JSON and back")
    func coding() throws {
        let value: JSONValue = [
            "a": [1, 2.5, "x\u{1F469}", nil, true], "b": ["c": .integer(9_007_199_254_740_993)], "e\u{301}": -0.0,
        ]
        let data = try JSONEncoder().encode(value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: data) == value)
        let splice = TextSplice(at: 3, removing: 1, inserting: "é")
        let operations: FieldMap<FieldOperation> = ["n": .increment(2), "t": .splice([splice])]
        var event = SyncEvent.update("m", id: "1", ["a": 1], operations: operations)
        #expect(try JSONDecoder().decode(SyncEvent.self, from: JSONEncoder().encode(event)) == event)
        event = .batch([.insert("m", id: "1", ["a": nil]), .delete("m", id: "2").guarded(["x": 4])])
        #expect(try JSONDecoder().decode(SyncEvent.self, from: JSONEncoder().encode(event)) == event)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(SyncEvent.self, from: Data("{}".utf8)) }
        for text in [#"{"type":"noop","last":true}"#, #"{"type":"noop"}"#, #"{"type":"batch","events":[]}"#] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(SyncEvent.self, from: Data(text.utf8)) }
        }
        for value in [JSONValue.number(.nan), .integer(9_007_199_254_740_993)] {
            #expect(throws: EncodingError.self) {
                try JSONEncoder().encode(SyncEvent.update("m", id: "1", ["a": value]))
            }
        }
        let name = ObjectName("task", id: "7")
        #expect(try JSONDecoder().decode(ObjectName.self, from: JSONEncoder().encode(name)) == name)
        let epoch = Epoch(0xfe)
        #expect(String(decoding: try JSONEncoder().encode(epoch), as: UTF8.self) == "\"00000000000000fe\"")
        #expect(try JSONDecoder().decode(Epoch.self, from: JSONEncoder().encode(epoch)) == epoch)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Epoch.self, from: Data("\"x\"".utf8)) }
        let error = ReelError(.tooLarge, "found more", retryMs: 3)
        #expect(try JSONDecoder().decode(ReelError.self, from: JSONEncoder().encode(error)) == error)
    }

    @Test("an event is printed as canonical JSON")
    func printedEvent() {
        let event = SyncEvent.update("task", id: "1", ["title": "Milk"], operations: ["n": .increment(2)])
        let text = #"{"fields":{"title":"Milk"},"id":"1","model":"task","ops":{"n":{"inc":2}},"type":"update"}"#
        #expect("\(event)" == text && String(describing: Optional(event)) == "Optional(\(text))")
        #expect(
            "\(SyncEvent.batch([.delete("task", id: "2")]))"
                == #"{"events":[{"id":"2","model":"task","type":"delete"}],"type":"batch"}"#
        )
    }

    @Test("equal values have equal hashes, and the two spellings of a text are two names")
    func hashing() {
        #expect(JSONValue.integer(3) == .number(3) && JSONValue.integer(3).hashValue == JSONValue.number(3).hashValue)
        #expect(Set<JSONValue>([.integer(3), 3, "3", nil, [3], ["a": 3]]).count == 5)
        let spellings: FieldMap<JSONValue> = ["\u{e9}": 1, "e\u{301}": 2]
        #expect(spellings.count == 2 && Set([spellings, spellings]).count == 1)
    }

    @Test("fields are written with interpolated texts and with numbers of the app")
    func fields() {
        let (title, count) = ("Milk", 3)
        let fields: FieldMap<JSONValue> = ["a": "\(title) \(count)", "b": JSONValue(title), "c": JSONValue(count)]
        #expect(JSONValue.object(fields).description == #"{"a":"Milk 3","b":"Milk","c":3}"#)
        #expect(JSONValue(UInt64.max) == .integer(.max) && JSONValue(1 << 60) == .number(1_152_921_504_606_846_976))
    }

    @Test("Foundation shows the message, the reason and the advice of an error")
    func localized() {
        let error: any Error = ReelError(.storeFull, "found no room for 8 bytes")
        #expect(error.localizedDescription == "found no room for 8 bytes")
        #expect((error as? any LocalizedError)?.recoverySuggestion?.isEmpty == false)
    }
}
