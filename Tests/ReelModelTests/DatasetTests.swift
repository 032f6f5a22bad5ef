import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Typed reads and writes of one device, which is offline.
@Suite(.timeLimit(.minutes(5))) struct DatasetTests {
    /// Runs `body` with a dataset of a device that has no nodes.
    private func offline(_ body: (Dataset) async throws -> Void) async throws {
        let client = try FakeNetwork().client(nodes: [])
        try await body(try await client.open("s", models: [Job.self, JobList.self]))
        await client.close()
    }

    private func job(_ id: ModelID<Job>, _ edit: (inout Job) -> Void = { _ in }) -> Job {
        var job = Job(id: id)
        job.createdAt = Timestamp(ms: 5)
        edit(&job)
        return job
    }

    private func expect(_ code: ErrorCode, _ body: () async throws -> Void) async {
        let error = await #expect(throws: ReelError.self) { try await body() }
        #expect(error?.code == code)
    }

    private func expect(_ kind: ModelProblem.Kind, _ body: () async throws -> Void) async {
        let error = await #expect(throws: ModelProblem.self) { try await body() }
        #expect(error?.kind == kind)
    }

    // MARK: Opening

    private struct Second: Model {
        let id: ID
        var a = ""
        init(id: ID) { self.id = id }
        static let schema = Schema<Second>("job") {
            Field("a", \.a)
            Field("b", \.a)
        }
    }

    @Test("a dataset with faults in its schemas is not opened, and says why") func faults() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let error = await #expect(throws: SchemaError.self) {
            try await client.open("s", models: [Job.self, Second.self])
        }
        let types = [String(reflecting: Job.self), String(reflecting: Second.self)]
        #expect(
            error?.faults == [
                .modelTwice(model: "job", types: types), .propertyTwice(model: "job", fields: ["a", "b"]),
            ]
        )
        let text = "found two models of the name job, the types ReelModelTests.Job and "
        #expect(error?.description.hasPrefix(text) == true)
        let empty = await #expect(throws: SchemaError.self) { try await client.open("s", models: []) }
        #expect(empty?.faults == [.noModels])
        #expect(try await client.streams().isEmpty)
        await client.close()
    }

    @Test("an object of a model that the dataset was not opened with is refused") func unknownModel() async throws {
        try await offline { todo in
            let error = await #expect(throws: SchemaError.self) { try await todo.insert(Second(id: "1")) }
            #expect(error?.faults == [.unknownModel(model: "job")])
        }
    }

    // MARK: Reading

    @Test("all objects of a model are read, with the problems of those that it cannot read") func objects() async throws
    {
        try await offline { todo in
            let (first, third) = (job("1") { $0.title = "a" }, job("3") { $0.tags = ["x"] })
            try await todo.insert(third)
            try await todo.insert(first)
            try await todo.stream.publish(.insert("job", id: "2", ["createdAt": 5, "votes": "many"]))
            try await todo.stream.publish(.insert("job", id: "4", ["title": "x"]))
            let found = try todo.objects(of: Job.self)
            #expect(found.values == [first, third])
            #expect(found.problems.map(\.object.id) == ["2", "4"])
            #expect(found.problems.map(\.kind) == [.value, .missingConstant])
            #expect(try todo.object("1") == first && todo.object(ModelID<Job>("5")) == nil)
            #expect(throws: ModelProblem.self) { try todo.object(Job.ID("2")) }
        }
    }

    @Test("a reference is resolved, or dangles") func references() async throws {
        try await offline { todo in
            let list = JobList(id: .random())
            let milk = job("1") { $0.list = Ref(list) }
            try await todo.insert(milk)
            let reference = try #require(milk.list)
            #expect(try todo.resolve(reference) == nil)
            try await todo.insert(list)
            #expect(try todo.resolve(reference) == list)
        }
    }

    // MARK: Writing

    @Test("an update sends the difference, and nothing if nothing changes") func update() async throws {
        try await offline { todo in
            try await todo.insert(job("1"))
            let write = try await todo.update(Job.ID("1")) {
                $0.votes += 2
                $0.isExpanded = true
            }
            #expect(write.event == .update("job", id: "1", operations: ["votes": .increment(2)]))
            let pending = await todo.stream.queue().map(\.event)
            let empty = try await todo.update(Job.ID("1")) { $0.isExpanded = true }
            #expect(try await empty.outcome() == .superseded && empty.event.changes.isEmpty)
            let value = try #require(try todo.object(Job.ID("1")))
            #expect(try await todo.save(value, changedFrom: value).outcome() == .superseded)
            #expect(try await todo.replace(value).outcome() == .superseded)
            #expect(try await todo.batch { _ in }.outcome() == .superseded)
            #expect(await todo.stream.queue().map(\.event) == pending)
        }
    }

    @Test("each of many updates at the same time sees the one before it") func concurrently() async throws {
        try await offline { todo in
            try await todo.insert(job("1"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        try await todo.update(Job.ID("1")) {
                            $0.votes += 1
                            $0.note += "\(number) "
                            $0.title = "\($0.votes)"
                        }
                    }
                }
                try await group.waitForAll()
            }
            let value = try #require(try todo.object(Job.ID("1")))
            #expect(value.votes == 50 && value.title == "50" && Set(value.note.split(separator: " ")).count == 50)
        }
    }

    @Test("an error of the closure, a bad value and a changed constant write nothing") func errors() async throws {
        struct Stop: Error {}
        try await offline { todo in
            try await todo.insert(job("1"))
            await #expect(throws: Stop.self) { try await todo.update(Job.ID("1")) { (_: inout Job) in throw Stop() } }
            await expect(.value) { try await todo.update(Job.ID("1")) { $0.priority = .infinity } }
            await expect(.changedConstant) { try await todo.update(Job.ID("1")) { $0.createdAt = .now } }
            await expect(.id) { try await todo.update(Job.ID("1")) { $0 = Job(id: "2") } }
            await expect(.id) { try await todo.insert(Job(id: "")) }
            await expect(.noObject) { try await todo.update(Job.ID("2")) { $0.votes = 1 } }
            await expect(.noObject) { try await todo.save(job("2"), changedFrom: job("2")) }
            try await todo.delete(Job.ID("1"))
            await expect(.deleted) { try await todo.update(Job.ID("1")) { $0.votes = 1 } }
            await expect(.deleted) { try await todo.insert(job("1")) }
            #expect(try todo.objects(of: Job.self) == ModelObjects())
        }
    }

    @Test("an insert of an object that exists is refused if the model has a constant") func twice() async throws {
        try await offline { todo in
            try await todo.insert(job("1"))
            await expect(.guard) { try await todo.insert(job("1")) }
            try await todo.insert(JobList(id: "1"))
            var list = JobList(id: "1")
            list.name = "Shop"
            try await todo.insert(list)
            #expect(try todo.object("1") == list)
        }
    }

    @Test("a saved form keeps what others have written meanwhile") func save() async throws {
        try await offline { todo in
            let original = job("1") {
                $0.note = "one two"
                $0.tags = ["a"]
            }
            try await todo.insert(original)
            try await todo.update(original.id) {
                $0.note = "zero one two"
                $0.title = "other"
                $0.votes = 4
                $0.tags.insert("b")
            }
            var edited = original
            edited.note += " three"
            edited.votes += 1
            edited.tags = ["c"]
            edited.isDone = true
            try await todo.save(edited, changedFrom: original)
            let value = try #require(try todo.object(original.id))
            #expect(value.note == "zero one two three" && value.title == "other" && value.isDone)
            #expect(value.votes == 5 && value.tags == ["b", "c"])
        }
    }

    @Test("a constant that a raw writer has changed is reported by the next save") func rawWriter() async throws {
        try await offline { todo in
            let original = job("1")
            try await todo.insert(original)
            try await todo.stream.publish(.update("job", id: "1", ["createdAt": 6]))
            var edited = original
            edited.title = "x"
            await expect(.changedConstant) { try await todo.save(edited, changedFrom: original) }
            let present = try #require(try todo.object(original.id))
            #expect(present.createdAt == Timestamp(ms: 6) && present.title == "")
            edited.createdAt = present.createdAt
            try await todo.save(edited, changedFrom: present)
            #expect(try todo.object(original.id) == edited)
        }
    }

    @Test("a replacement inserts, overwrites and repairs") func replace() async throws {
        try await offline { todo in
            let value = job("1") { $0.votes = 3 }
            try await todo.replace(value)
            #expect(try todo.object(value.id) == value)
            try await todo.stream.publish(.update("job", id: "1", ["votes": "many", "unknown": 1]))
            try await todo.replace(value)
            #expect(try todo.object(value.id) == value)
            #expect(try todo.stream.object("job", id: "1")?["unknown"] == 1)
        }
    }

    // MARK: Batches

    @Test("a batch is one event, whose later writes see the earlier ones") func batch() async throws {
        try await offline { todo in
            let (shop, milk) = (JobList(id: .random()), job("1") { $0.note = "a" })
            let write = try await todo.batch {
                try $0.insert(shop)
                try $0.insert(milk)
                try $0.update(milk.id) {
                    $0.list = Ref(shop)
                    $0.note += "b"
                }
                try $0.update(milk.id) { $0.note += "c" }
                let present = try $0.object(milk.id)
                #expect(present?.note == "abc")
                try $0.insert(job("2"))
                try $0.delete(Job.ID("2"))
                #expect(try $0.object(Job.ID("2")) == nil)
            }
            #expect(write.event.isBatch && write.event.changes.count == 6)
            let value = try #require(try todo.object(milk.id))
            #expect(value.note == "abc" && value.list == Ref(shop))
            let single = try await todo.batch { try $0.update(milk.id) { $0.votes = 1 } }
            #expect(!single.event.isBatch)
        }
    }

    @Test("a batch that throws, and one with more than 100 writes, write nothing") func badBatches() async throws {
        struct Stop: Error {}
        try await offline { todo in
            await #expect(throws: Stop.self) {
                try await todo.batch {
                    try $0.insert(job("1"))
                    throw Stop()
                }
            }
            await expect(.deleted) {
                try await todo.batch {
                    try $0.insert(job("1"))
                    try $0.delete(Job.ID("1"))
                    try $0.update(Job.ID("1")) { $0.votes = 1 }
                }
            }
            await expect(.badEvent) {
                try await todo.batch { for number in 0...100 { try $0.insert(job(ModelID("\(number)"))) } }
            }
            let left = try todo.objects(of: Job.self)
            #expect(left == ModelObjects())
        }
    }

    // MARK: Defaults and places

    @Test("defaults are written where a field was never written") func defaults() async throws {
        try await offline { todo in
            let settings = job("settings") {
                $0.title = "default"
                $0.votes = 3
            }
            try await todo.stream.publish(.insert("job", id: "settings", ["title": "own", "completed": true]))
            try await todo.insertDefaults(settings)
            var value = try #require(try todo.object(settings.id))
            #expect(value.title == "own" && value.isDone && value.votes == 3 && value.createdAt == settings.createdAt)
            #expect(try await todo.insertDefaults(settings).isEmpty)
            value.title = ""
            try await todo.replace(value)
            #expect(try await todo.insertDefaults(settings).isEmpty)
            // Without any field there is still an object.
            try await todo.insertDefaults(JobList(id: "1"))
            #expect(try todo.object("1") == JobList(id: "1"))
        }
    }

    @Test("an object moves between two others by one write") func move() async throws {
        try await offline { todo in
            var rank: Rank?
            for id in ["1", "2", "3"] {
                rank = .between(rank, nil)
                let place = try #require(rank)
                try await todo.insert(job(ModelID(id)) { $0.rank = place })
            }
            func order() throws -> [String] {
                try todo.objects(of: Job.self).values.sorted { $0.rank < $1.rank }.map(\.id.text)
            }
            let write = try await todo.move(ModelID<Job>("3"), between: "1", and: "2")
            #expect(write.event.changes.map(\.fields.names) == [["rank"]])
            #expect(try order() == ["1", "3", "2"])
            try await todo.move(Job.ID("1"), between: "2", and: nil)
            #expect(try order() == ["3", "2", "1"])
            try await todo.move(Job.ID("2"), between: nil, and: "3")
            #expect(try order() == ["2", "3", "1"])
            await expect(.noObject) { try await todo.move(Job.ID("1"), between: "9", and: nil) }
            try await todo.insert(JobList(id: "1"))
            await expect(.property) { try await todo.move(ModelID<JobList>("1"), between: nil, and: nil) }
        }
    }
}
