import ReelCore
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The texts of the errors that `publish` throws.
@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
    private static func splice(_ field: String, at offset: Int64) -> FieldMap<FieldOperation> {
        [field: .splice([TextSplice(at: offset, removing: 0, inserting: "x")])]
    }

    private static func update(_ operations: FieldMap<FieldOperation>) -> SyncEvent {
        .update("n", id: "1", operations: operations)
    }

    @Test("the error of a refused guard, type or range names the field, and what was expected")
    func namesTheField() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        let largest = Double.greatestFiniteMagnitude
        let fields: FieldMap<JSONValue> = ["n": .number(largest), "set": [1], "text": "a", "title": "b"]
        try await stream.publish(.insert("n", id: "1", fields)).outcome()
        try await stream.publish(.update("n", id: "1", ["title": "c"])).outcome()
        let seqs = try #require(try stream.object("n", id: "1")).fields
        let (first, last) = (try #require(seqs["n"]?.seq), try #require(seqs["title"]?.seq))
        let range = "beyond the end of the text in the field \"text\" of n/1: offsets count Unicode scalars"
        let again = "read the object again, and decide again"
        let guarded = SyncChange.update("n", id: "1", ["x": 1])
        let cases: [(SyncEvent, ErrorCode, String)] = [
            (
                SyncEvent(guarded.guarded(["n": first, "title": first])), .guard,
                "found a guard of the field \"title\" of n/1 that does not hold, expected seq \(first) as its last writer: "
                    + again
            ),
            (
                SyncEvent(guarded.guarded(["absent": -1, "set": -1, "title": last])), .guard,
                "found a guard of the field \"set\" of n/1 that does not hold, expected no such field: " + again
            ),
            (
                Self.update(["n": .increment(-1), "title": .increment(1)]), .type,
                "found an increment of the field \"title\" of n/1, which is not a number"
            ),
            (
                Self.update(["n": .change(add: [1], remove: []), "set": .change(add: [2], remove: [])]), .type,
                "found a change of a set in the field \"n\" of n/1, which is not an array"
            ),
            (
                Self.update(Self.splice("set", at: 0)), .type,
                "found a splice of the field \"set\" of n/1, which is not a text"
            ),
            (
                Self.update(Self.splice("text", at: 2).merging(["n": .increment(-1)])), .range,
                "found a splice " + range
            ),
            (
                Self.update(Self.splice("text", at: 1).merging(["n": .increment(largest)])), .range,
                "found an increment of the field \"n\" of n/1 to a sum beyond the largest number"
            ),
            (
                .batch([
                    .update("n", id: "1", operations: Self.splice("text", at: 1)),
                    .update("n", id: "1", ["x": 1], operations: Self.splice("text", at: 3)),
                ]), .range, "found a splice " + range
            ),
        ]
        for (event, code, message) in cases {
            let error = await #expect(throws: ReelError.self, "\(event)") { try await stream.publish(event) }
            #expect(error?.code == code && error?.message == message, "\(event)")
        }
        await client.close()
    }

    @Test("the error of a stale splice names the text that another device has replaced")
    func namesTheStaleText() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("n", id: "1", ["other": "a", "text": "a"])).outcome()
        let read = try #require(try stream.object("n", id: "1"))
        let other = try network.client(nodes: ["b"], seed: 6)
        let written = try await other.open("s", from: .beginning).publish(.update("n", id: "1", ["text": "b"])).acked()
        try await stream.waitUntil(seq: try #require(written))
        let event = Self.update(Self.splice("other", at: 1).merging(Self.splice("text", at: 1)))
        let error = await #expect(throws: ReelError.self) { try await stream.publish(event, base: read.readAt) }
        #expect(error?.code == .stale)
        let text = "found a splice of the field \"text\" of n/1, whose text was replaced since: read the object again"
        #expect(error?.message == text)
        for client in [client, other] { await client.close() }
    }
}
