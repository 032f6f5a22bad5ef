import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// An object gets the named fields, and loses all others that the device knows.
@Suite(.timeLimit(.minutes(5))) struct ReplacingTests {
    @Test("an object that does not exist is inserted, and one that exists has the new fields only")
    func replaces() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: -1)
        try await stream.replace("m", id: "1", ["a": 1, "b": [1, 2]]).outcome()
        #expect(try stream.object("m", id: "1")?.fields.names == ["a", "b"])
        let publication = try await stream.replace("m", id: "1", ["b": "x", "c": nil, "d": true])
        #expect(publication.event == .update("m", id: "1", ["a": nil, "b": "x", "c": nil, "d": true]))
        #expect(try stream.object("m", id: "1")?.fields.names == ["b", "d"])
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        #expect(try stream.confirmed.object("m", id: "1")?.fields.names == ["b", "d"])
        try await stream.replace("m", id: "1", [:]).outcome()
        #expect(try stream.object("m", id: "1")?.fields.isEmpty == true)
        try await stream.publish(.delete("m", id: "1")).outcome()
        let error = await #expect(throws: ReelError.self) { try await stream.replace("m", id: "1", ["a": 1]) }
        #expect(error?.code == .deleted)
        await client.close()
    }

    @Test("own events that wait are part of what is replaced, also an insert that they merge into")
    func own() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: [])
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["a": 1, "b": 2]))
        try await stream.publish(.update("m", id: "1", operations: ["n": .increment(2)]))
        try stream.enqueue(.update("m", id: "1", ["late": 1]))
        try await stream.replace("m", id: "1", ["b": 3])
        #expect(try stream.object("m", id: "1")?.fields.names == ["b"])
        // An object that this device has not read may exist: its fields there stay.
        let publication = try await stream.replace("m", id: "2", ["a": 1])
        #expect(publication.event == .insert("m", id: "2", ["a": 1]))
        await client.close()
    }

    @Test("a field that another device writes at the same time stays if this device does not know it")
    func concurrent() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "1", ["a": 1, "b": 1])).outcome()
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            network.author(.update("m", id: "1", ["a": 2, "new": 2]))
        }
        let publication = try await stream.replace("m", id: "1", ["b": 3])
        try await network.on { $0.down = [] }
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        let object = try #require(try stream.object("m", id: "1"))
        #expect(object.fields.names == ["b", "new"] && object["b"] == 3 && object["new"] == 2)
        await client.close()
    }

    @Test("each of many replacements at the same time leaves its fields only")
    func concurrently() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 0..<50 {
                group.addTask { try await stream.replace("m", id: "1", ["f\(id)": 1, "g\(id)": 1]) }
            }
            try await group.waitForAll()
        }
        func isOne(_ names: [String]?) -> Bool { names?.count == 2 && names?[0].dropFirst() == names?[1].dropFirst() }
        #expect(isOne(try stream.object("m", id: "1")?.fields.names))
        try await stream.flush(deadline: .seconds(300))
        #expect(isOne(try stream.confirmed.object("m", id: "1")?.fields.names))
        await client.close()
    }
}
