import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Cascading deletes that are a part of a batch.
@Suite(.timeLimit(.minutes(5))) struct BatchCascadeTests {
    /// Runs `body` with a dataset of a device that has no nodes.
    private func offline(_ body: (Dataset) async throws -> Void) async throws {
        let client = try FakeNetwork().client(nodes: [])
        let data = try await client.open("s", models: [Folder.self, Item.self])
        let folders = [Folder("1", in: nil), Folder("2", in: "1"), Folder("3", in: nil)]
        for folder in folders { try await data.insert(folder) }
        for item in [Item("a", in: "2"), Item("b", from: "a"), Item("c", in: "3")] { try await data.insert(item) }
        try await body(data)
        await client.close()
    }

    @Test("a cascading delete is a part of the batch's event, and sees its earlier writes") func earlierWrites()
        async throws
    {
        try await offline { data in
            let write = try await data.batch { batch in
                try batch.insert(Item("new", in: "2"))
                try batch.update(Item.ID("a")) { $0.folder = Ref(Folder.ID("3")) }
                try batch.update(Item.ID("c")) { $0.folder = Ref(Folder.ID("1")) }
                let problems = try batch.delete(Folder.ID("1"), cascading: \Folder.parent, \Item.folder, \Item.origin)
                #expect(problems.isEmpty)
                #expect(try batch.object(Item.ID("c")) == nil && batch.object(Item.ID("a")) != nil)
            }
            #expect(write.event.changes.map(\.id) == ["new", "a", "c", "new", "2", "c", "1"])
            #expect(try data.objects(of: Folder.self).values.map(\.id) == ["3"])
            #expect(try data.objects(of: Item.self).values.map(\.id) == ["a", "b"])
        }
    }

    @Test("an object that an earlier write of the batch has deleted is not followed") func deletedBefore()
        async throws
    {
        try await offline { data in
            let write = try await data.batch { batch in
                try batch.delete(Folder.ID("2"))
                try batch.delete(Folder.ID("1"), cascading: \Folder.parent, \Item.folder, \Item.origin)
            }
            #expect(write.event.changes.map(\.id) == ["2", "1"])
            #expect(try data.objects(of: Item.self).values.map(\.id) == ["a", "b", "c"])
        }
    }

    @Test("a cycle that earlier writes of the batch have made ends") func cycle() async throws {
        try await offline { data in
            let write = try await data.batch { batch in
                try batch.update(Folder.ID("1")) { $0.parent = Ref(Folder.ID("2")) }
                try batch.delete(Folder.ID("1"), cascading: \Folder.parent)
            }
            #expect(write.event.changes.map(\.id) == ["1", "2", "1"])
            #expect(try data.objects(of: Folder.self).values.map(\.id) == ["3"])
        }
    }

    @Test("an object that its model cannot read stays, and an absent root and an unknown property are errors")
    func errors() async throws {
        try await offline { data in
            try await data.stream.publish(.insert("item", id: "bad", ["folder": "2", "votes": "many"]))
            let problems = Mutex<[ModelProblem]>([])
            try await data.batch { batch in
                let found = try batch.delete(Folder.ID("2"), cascading: \Item.folder, \Item.origin)
                problems.withLock { $0 = found }
            }
            #expect(problems.withLock { $0.map(\.object.id) } == ["bad"])
            #expect(try data.stream.object("item", id: "bad") != nil && data.object(Item.ID("b")) == nil)
            let absent = await #expect(throws: ReelError.self) {
                try await data.batch { try $0.delete(Folder.ID("9"), cascading: \Item.folder) }
            }
            #expect(absent?.code == .noObject)
            await #expect(throws: SchemaError.self) {
                try await data.batch { try $0.delete(Item.ID("c"), cascading: \Item.neighbor) }
            }
            #expect(try data.object(Item.ID("c")) != nil)
        }
    }

    @Test("more objects than one event can have are refused as a whole") func tooMany() async throws {
        try await offline { data in
            for part in 0..<2 {
                try await data.batch { batch in
                    for number in 0..<60 { try batch.insert(Item(.init("\(part) \(number)"), in: "1")) }
                }
            }
            await #expect(throws: ReelError.self) {
                try await data.batch { try $0.delete(Folder.ID("1"), cascading: \Item.folder) }
            }
            #expect(try data.object(Folder.ID("1")) != nil && data.objects(of: Item.self).values.count == 123)
        }
    }
}
