import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// References between the objects of one device, which is offline.
@Suite(.timeLimit(.minutes(5))) struct RelationTests {
    /// Runs `body` with a dataset of a device that has no nodes.
    private func offline(_ body: (Dataset) async throws -> Void) async throws {
        let client = try FakeNetwork().client(nodes: [])
        try await body(try await client.open("s", models: [Folder.self, Item.self, Tag.self]))
        await client.close()
    }

    private func left(_ data: Dataset) throws -> Set<String> {
        let names =
            try data.objects(of: Folder.self).values.map(\.id.text) + data.objects(of: Item.self).values.map(\.id.text)
        return Set(names)
    }

    private func deleted(_ writes: RelationWrites) -> [String] {
        writes.handles.flatMap { $0.event.changes.map(\.id) }
    }

    // MARK: Cascades

    @Test("a delete takes all objects that refer to the object, over several models and levels, in one event")
    func levels() async throws {
        try await offline { data in
            for folder in [Folder("1", in: nil), Folder("2", in: "1"), Folder("3", in: "2"), Folder("4", in: nil)] {
                try await data.insert(folder)
            }
            let items = [Item("a", in: "3"), Item("b", from: "a"), Item("c", in: "4"), Item("d", in: "4", from: "c")]
            for item in items { try await data.insert(item) }
            let writes = try await data.delete(
                Folder.ID("1"),
                cascading: \Folder.parent,
                \Item.folder,
                \Item.origin
            )
            #expect(writes.handles.count == 1 && writes.problems.isEmpty)
            #expect(deleted(writes) == ["b", "a", "3", "2", "1"])
            #expect(try left(data) == ["4", "c", "d"])
        }
    }

    @Test("a delete follows only the given references") func givenReferences() async throws {
        try await offline { data in
            try await data.insert(Folder("1", in: nil))
            try await data.insert(Folder("2", in: "1"))
            try await data.insert(Item("a", in: "1"))
            try await data.insert(Item("b", from: "a"))
            try await data.delete(Folder.ID("1"), cascading: \Item.folder)
            #expect(try left(data) == ["2", "b"])
            #expect(try data.orphans(of: \Folder.parent).values.map(\.id) == ["2"])
            #expect(try data.orphans(of: \Item.origin).values.map(\.id) == ["b"])
            #expect(try data.orphans(of: \Item.folder).values.isEmpty)
        }
    }

    @Test("cycles and references of an object to itself end") func cycles() async throws {
        try await offline { data in
            for (id, parent) in [("1", "3"), ("2", "1"), ("3", "2"), ("4", "4")] {
                try await data.insert(Folder(.init(id), in: .init(parent)))
            }
            #expect(try data.orphans(of: \Folder.parent).values.isEmpty)
            let own = try await data.delete(Folder.ID("4"), cascading: \Folder.parent)
            #expect(deleted(own) == ["4"])
            let cycle = try await data.delete(Folder.ID("2"), cascading: \Folder.parent)
            #expect(Set(deleted(cycle)) == ["1", "2", "3"] && deleted(cycle).last == "2")
            #expect(try left(data).isEmpty)
        }
    }

    @Test("a former name of a reference counts until the present one is written") func formerName() async throws {
        try await offline { data in
            try await data.insert(Folder("1", in: nil))
            try await data.stream.publish(.insert("folder", id: "2", ["above": "1"]))
            try await data.stream.publish(.insert("folder", id: "3", ["above": "1", "parent": "2"]))
            let writes = try await data.delete(Folder.ID("1"), cascading: \Folder.parent)
            #expect(deleted(writes) == ["3", "2", "1"])
        }
    }

    @Test("a large delete takes several events, each object before those that it refers to", arguments: [99, 100, 350])
    func several(count: Int) async throws {
        try await offline { data in
            // A chain, so that each event holds objects that the next one is referred from.
            try await data.insert(Folder("0", in: nil))
            for number in 1...count { try await data.insert(Folder(.init("\(number)"), in: .init("\(number - 1)"))) }
            try await data.insert(Item("a", in: .init("\(count)")))
            let writes = try await data.delete(Folder.ID("0"), cascading: \Folder.parent, \Item.folder)
            #expect(deleted(writes) == ["a"] + (0...count).reversed().map { "\($0)" })
            #expect(writes.handles.count == (count + 2 + 99) / 100)
            #expect(writes.handles.allSatisfy { $0.event.changes.count <= 100 })
            #expect(try left(data).isEmpty)
        }
    }

    @Test("objects that are attached while a large delete runs are deleted, and those that are moved away stay")
    func attachedMeanwhile() async throws {
        try await offline { data in
            try await data.insert(Folder("0", in: nil))
            try await data.insert(Folder("other", in: nil))
            for part in 0..<4 {
                try await data.batch { batch in
                    for number in 0..<100 { try batch.insert(Item(.init("\(part * 100 + number)"), in: "0")) }
                }
            }
            let moved = try await withThrowingTaskGroup(of: [String].self) { group in
                group.addTask {
                    var moved: [String] = []
                    for number in (0..<400).reversed() {
                        let write = try await data.batch { batch in
                            guard try batch.object(Folder.ID("0")) != nil else { return }
                            try batch.insert(Item(.init("new \(number)"), in: "0"))
                            guard number % 3 == 0, try batch.object(Item.ID("\(number)")) != nil else { return }
                            try batch.update(Item.ID("\(number)")) { $0.folder = Ref("other") }
                        }
                        if write.event.changes.count == 2 { moved.append("\(number)") }
                    }
                    return moved
                }
                group.addTask {
                    try await data.delete(Folder.ID("0"), cascading: \Item.folder)
                    return []
                }
                return try await group.reduce([], +)
            }
            #expect(try data.orphans(of: \Item.folder).values.isEmpty)
            #expect(try left(data) == Set(moved + ["other"]))
        }
    }

    @Test("an object that is attached to one that a large delete then deletes is deleted by its last event")
    func attachedBetweenEvents() async throws {
        try await offline { data in
            try await data.insert(Folder("0", in: nil))
            for number in 1...250 { try await data.insert(Folder(.init("\(number)"), in: "0")) }
            let references = [
                try ReferenceField(\Folder.parent, in: data), try ReferenceField(\Item.folder, in: data),
            ]
            let cascade = Mutex(Cascade(ObjectName("folder", id: "0"), references))
            func next() async throws -> [SyncChange] {
                try await data.stream.publish { present in try cascade.withLock { try $0.next(present) } }.event.changes
            }
            #expect(try await next().count == 100)
            let folder = try #require(try data.objects(of: Folder.self).values.dropFirst().first)
            // One folder is deleted by the second event, and another one only by the last.
            try await data.insert(Item("a", in: folder.id))
            try await data.insert(Item("b", in: "0"))
            let second = try await next()
            try #require(second.contains { $0.id == folder.id.text } && !cascade.withLock(\.isFinished))
            #expect(try data.orphans(of: \Item.folder).values.map(\.id) == ["a"])
            #expect(try await next().map(\.id).suffix(3).sorted() == ["0", "a", "b"])
            #expect(try cascade.withLock(\.isFinished) && left(data).isEmpty)
        }
    }

    @Test("a delete of a deleted object deletes what still refers to it, and one of an unknown object is refused")
    func again() async throws {
        try await offline { data in
            try await data.insert(Folder("1", in: nil))
            try await data.insert(Item("a", in: "1"))
            try await data.delete(Folder.ID("1"))
            #expect(try data.orphans(of: \Item.folder).values.map(\.id) == ["a"])
            let again = try await data.delete(Folder.ID("1"), cascading: \Item.folder)
            #expect(deleted(again) == ["a", "1"])
            #expect(try left(data).isEmpty)
            let error = await #expect(throws: ReelError.self) {
                try await data.delete(Folder.ID("9"), cascading: \Item.folder)
            }
            #expect(error?.code == .noObject)
        }
    }

    @Test("a delete sees the own events that were enqueued immediately before") func ownEvents() async throws {
        try await offline { data in
            try await data.insert(Folder("1", in: nil))
            // The client takes them in several steps.
            for number in 0..<2_000 { _ = try data.stream.enqueue(.insert("item", id: "\(number)", ["folder": "2"])) }
            for number in 0..<100 {
                _ = try data.stream.enqueue(.update("item", id: "\(number)", ["folder": "1"]))
            }
            _ = try data.stream.enqueue(.update("item", id: "7", ["folder": nil]))
            let writes = try await data.delete(Folder.ID("1"), cascading: \Item.folder)
            #expect(deleted(writes).count == 100 && writes.handles.count == 1)
            #expect(try data.object(Item.ID("7")) == Item("7"))
        }
    }

    // MARK: Bad input

    @Test("an object that its model cannot read stays, with what refers to it, and is reported")
    func unreadable() async throws {
        try await offline { data in
            try await data.insert(Folder("1", in: nil))
            try await data.insert(Item("a", in: "1"))
            try await data.stream.publish(.insert("item", id: "b", ["folder": "1", "votes": "many"]))
            try await data.insert(Item("c", from: "b"))
            let writes = try await data.delete(Folder.ID("1"), cascading: \Item.folder, \Item.origin)
            #expect(deleted(writes) == ["a", "1"])
            #expect(writes.problems.map(\.object) == [ObjectName("item", id: "b")])
            #expect(try data.stream.object("item", id: "b")?["votes"] == "many")
            let orphans = try data.orphans(of: \Item.folder)
            #expect(orphans.values.isEmpty && orphans.problems.map(\.object.id) == ["b"])
            // The target of `c` exists, although the model cannot read it.
            #expect(try data.orphans(of: \Item.origin).values.isEmpty)
        }
    }

    @Test("a reference that is no id, and one of absurd length, refer to nothing") func badReferences() async throws {
        try await offline { data in
            let long = String(repeating: "x", count: 100_000)
            try await data.insert(Folder("1", in: nil))
            for (id, value) in [("a", 1), ("b", ["1"]), ("c", .string(long)), ("d", "")] as [(String, JSONValue)] {
                try await data.stream.publish(.insert("item", id: id, ["folder": value]))
            }
            let orphans = try data.orphans(of: \Item.folder)
            #expect(orphans.values.isEmpty && orphans.problems.map(\.object.id) == ["a", "b", "c", "d"])
            let writes = try await data.delete(Folder.ID("1"), cascading: \Item.folder)
            #expect(deleted(writes) == ["1"] && writes.problems.isEmpty)
            #expect(try data.resolve(Ref(Folder.ID(long))) == nil)
            #expect(try data.resolve([Ref(Folder.ID(long)), Ref(Folder.ID(""))]).values.isEmpty)
            let error = await #expect(throws: ReelError.self) {
                try await data.delete(Folder.ID(long), cascading: \Item.folder)
            }
            #expect(error?.code == .noObject)
            await #expect(throws: ModelProblem.self) { try await data.insert(Item("e", in: .init(long))) }
        }
    }

    @Test("a reference outside the schema, and a model that the dataset was not opened with, are refused")
    func outside() async throws {
        try await offline { data in
            try await data.insert(Item("a"))
            let fault = [SchemaFault.unknownProperty(model: "item")]
            let orphans = #expect(throws: SchemaError.self) { try data.orphans(of: \Item.neighbor) }
            let delete = await #expect(throws: SchemaError.self) {
                try await data.delete(Item.ID("a"), cascading: \Item.neighbor)
            }
            let sets = await #expect(throws: SchemaError.self) {
                try await data.removeDeletedTargets(from: \Item.friends)
            }
            #expect(orphans?.faults == fault && delete?.faults == fault && sets?.faults == fault)
            let unknown = #expect(throws: SchemaError.self) { try data.orphans(of: \Job.list) }
            #expect(unknown?.faults == [.unknownModel(model: "job")])
        }
    }

    // MARK: Sets

    @Test("a set of references is written by its differences, and resolved without deleted targets")
    func sets() async throws {
        try await offline { data in
            for id in ["c", "a", "b"] { try await data.insert(Tag(id: .init(id))) }
            let item = Item("1")
            try await data.insert(item)
            let write = try await data.update(item.id) { $0.tags = [Ref("a"), Ref("b"), Ref("z")] }
            let change = FieldOperation.change(add: ["a", "b", "z"], remove: [])
            #expect(write.event == .update("item", id: "1", operations: ["tags": change]))
            try await data.delete(Tag.ID("b"))
            try await data.stream.publish(.update("tag", id: "c", ["name": 1]))
            try await data.update(item.id) { $0.tags.insert(Ref("c")) }
            let tags = try #require(try data.object(item.id)?.tags)
            let found = try data.resolve(tags)
            #expect(tags.count == 4 && found.values.map(\.id) == ["a"] && found.problems.map(\.object.id) == ["c"])
        }
    }

    @Test("deleted targets leave all sets by one event, and targets that are only absent stay")
    func deletedTargets() async throws {
        try await offline { data in
            for id in ["a", "b"] { try await data.insert(Tag(id: .init(id))) }
            for id in ["1", "2", "3"] {
                var item = Item(.init(id))
                item.tags = id == "3" ? [Ref("a")] : [Ref("a"), Ref("b"), Ref("z")]
                try await data.insert(item)
            }
            try await data.stream.publish(.insert("item", id: "4", ["tags": ["b", 1]]))
            try await data.delete(Tag.ID("b"))
            let writes = try await data.removeDeletedTargets(from: \Item.tags)
            #expect(writes.handles.count == 1 && writes.problems.map(\.object.id) == ["4"])
            #expect(writes.handles.first?.event.changes.map(\.id) == ["1", "2"])
            #expect(try data.object(Item.ID("1"))?.tags == [Ref("a"), Ref("z")])
            #expect(try data.stream.object("item", id: "4")?["tags"] == ["b", 1])
            #expect(try await data.removeDeletedTargets(from: \Item.tags).handles.isEmpty)
        }
    }

    @Test("deleted targets leave many sets by several events") func manySets() async throws {
        try await offline { data in
            try await data.insert(Tag(id: "a"))
            for part in 0..<3 {
                try await data.batch { batch in
                    for number in 0..<70 {
                        var item = Item(.init("\(part) \(number)"))
                        item.tags = [Ref("a")]
                        try batch.insert(item)
                    }
                }
            }
            try await data.delete(Tag.ID("a"))
            let writes = try await data.removeDeletedTargets(from: \Item.tags)
            #expect(writes.handles.map(\.event.changes.count) == [100, 100, 10])
            #expect(try data.objects(of: Item.self).values.allSatisfy(\.tags.isEmpty))
        }
    }

    // MARK: Order

    @Test("the order of a delete has each object that is reached once, before those that it refers to")
    func order() {
        Seeds.run(200) { seed in
            var random = SeededNumbers(seed)
            let count = 1 + random.below(12)
            let isAcyclic = random.oneIn(2)
            var referrers: [String: [String]] = [:]
            for _ in 0..<random.below(3 * count) {
                let (target, source) = (random.below(count), random.below(count))
                if isAcyclic, source <= target { continue }
                referrers["\(target)", default: []].append("\(source)")
            }
            var reached: Set<String> = ["0"]
            while case let more = reached.union(reached.flatMap { referrers[$0] ?? [] }), more != reached {
                reached = more
            }
            let order = Cascade.order(from: ObjectName("m", id: "0")) { name in
                (referrers[name.id] ?? []).map { ObjectName("m", id: $0) }
            }.map(\.id)
            #expect(Set(order) == reached && order.count == reached.count && order.last == "0", "REEL_SEED=\(seed)")
            let places = Dictionary(uniqueKeysWithValues: zip(order, order.indices))
            for (target, sources) in referrers where isAcyclic {
                guard let place = places[target] else { continue }
                #expect(sources.allSatisfy { places[$0].map { $0 < place } == true }, "REEL_SEED=\(seed)")
            }
        }
    }

    @Test("a chain of references that is longer than the stack ends") func longChain() {
        let order = Cascade.order(from: ObjectName("m", id: "0")) { name in
            let number = Int(name.id) ?? 0
            return number < 200_000 ? [ObjectName("m", id: "\(number + 1)")] : []
        }
        #expect(order.count == 200_001 && order.first?.id == "200000")
    }
}
