import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Numbers that the log cannot contain, in every place of an event.
@Suite(.timeLimit(.minutes(5))) struct NumberTests {
    static let bad: [JSONValue] = [
        .number(.nan), .number(.infinity), .number(-.infinity), 9_007_199_254_740_993, .integer(.max),
        -9_007_199_254_740_993,
    ]

    @Test("publish throws bad_number for a number that no double can hold, anywhere in the event", arguments: bad)
    func badNumbers(number: JSONValue) async throws {
        let client = try FakeNetwork().client()
        let stream = try await client.open("s")
        var deep = number
        for level in 0..<20 { deep = level.isMultiple(of: 2) ? ["x": deep] : [1, deep] }
        var events: [SyncEvent] = [
            .insert("m", id: "1", ["x": number]), .insert("m", ["x": number]),
            .update("m", id: "1", ["y": 1, "x": [1, number]]),
            .update("m", id: "1", ["x": deep]),
            .update("m", id: "1", operations: ["x": .change(add: [number], remove: [])]),
            .update("m", id: "1", operations: ["x": .change(add: [], remove: [["y": number]])]),
            .batch([.insert("m", id: "1"), .update("m", id: "1", ["x": number])]),
        ]
        if case .number(let amount) = number {
            events.append(.update("m", id: "1", operations: ["x": .increment(amount)]))
        }
        if case .integer(let integer) = number {
            events.append(SyncEvent(.insert("m", id: "1").guarded(["x": integer])))
            for splice in [
                TextSplice(at: integer, removing: 0, inserting: ""),
                TextSplice(at: 0, removing: integer, inserting: ""),
            ] {
                events.append(.update("m", id: "1", operations: ["x": .splice([splice])]))
            }
        }
        for event in events {
            let error = await #expect(throws: ReelError.self) { try await stream.publish(event) }
            #expect(error?.code == .badNumber, "\(event)")
        }
        #expect(await stream.pendingCount == 0)
        await client.close()
    }

    @Test("an integer that a double represents exactly keeps its value, as a literal and as an integer")
    func exactIntegers() async throws {
        let client = try FakeNetwork().client()
        let stream = try await client.open("s")
        let values: FieldMap<JSONValue> = [
            "a": 9_007_199_254_740_992, "b": 9_007_199_254_740_994, "c": .integer(1 << 60), "d": .integer(-5), "e": 0,
            "f": .integer(.min),
        ]
        try await stream.publish(.insert("m", id: "1", values)).outcome()
        let object = try #require(try stream.object("m", id: "1"))
        for (name, value) in values { #expect(object[name] == value, "\(name)") }
        #expect(object["c"]?.number == 1_152_921_504_606_846_976)
        #expect(JSONValue.integer(5) == 5 && JSONValue.integer(5) != 6 && JSONValue.number(5) == .integer(5))
        #expect(JSONValue.integer(.max) != .number(Double(Int64.max)), "that double is another number")
        #expect(JSONValue.integer(.max).number == nil && JSONValue.integer(7).number == 7)
        await client.close()
    }

    @Test("publish throws for invalid names, levels and sizes")
    func otherLimits() async throws {
        let client = try FakeNetwork().client()
        let stream = try await client.open("s")
        var deep: JSONValue = 1
        for _ in 0..<30 { deep = [deep] }
        try await stream.publish(.insert("m", id: "deep", ["x": deep]))
        for _ in 0..<1_000 { deep = [deep] }
        let long = String(repeating: "é", count: 65)
        let events: [(SyncEvent, ErrorCode)] = [
            (.insert("", id: "1"), .badEvent), (.insert("m", id: ""), .badEvent), (.insert("m", id: long), .badEvent),
            (.insert(long, id: "1"), .badEvent), (.insert("m", id: "a\nb"), .badEvent),
            (.insert("m", id: "1", ["": 1]), .badEvent),
            (.insert("m", id: "1", ["a\u{0}": 1]), .badEvent),
            (.update("m", id: "1", operations: [long: .increment(1)]), .badEvent),
            (SyncEvent(.update("m", id: "1").guarded(["": -1])), .badEvent),
            (SyncEvent(.update("m", id: "1").guarded(["a": -2])), .badEvent),
            (
                .update("m", id: "1", operations: ["a": .splice([TextSplice(at: -1, removing: 0, inserting: "")])]),
                .badEvent
            ),
            (.update("m", id: "1", operations: ["a": .splice([])]), .badEvent), (.batch([]), .badEvent),
            (.batch(Array(repeating: .insert("m", id: "1"), count: 101)), .badEvent),
            (.insert("m", id: "1", ["x": deep]), .badJSON),
            (.update("m", id: "1", operations: ["x": .change(add: [deep], remove: [])]), .badJSON),
            (.insert("m", id: "1", ["x": .string(String(repeating: "x", count: 1 << 20))]), .tooLarge),
        ]
        for (event, code) in events {
            let error = await #expect(throws: ReelError.self) { try await stream.publish(event) }
            #expect(error?.code == code)
        }
        await client.close()
    }

    @Test("a counter beyond 2^53 is rounded as doubles are, and beyond the largest double publish throws range")
    func counters() async throws {
        let client = try FakeNetwork().client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["n": 9_007_199_254_740_992, "large": .number(1e308)])).outcome()
        let add = SyncEvent.update("m", id: "1", operations: ["n": .increment(1)])
        guard case .applied = try await stream.publish(add).outcome() else { throw Wrong() }
        #expect(try stream.object("m", id: "1")?["n"] == 9_007_199_254_740_992)
        let error = await #expect(throws: ReelError.self) {
            try await stream.publish(.update("m", id: "1", operations: ["large": .increment(1e308)]))
        }
        #expect(error?.code == .range)
        await client.close()
    }
}
