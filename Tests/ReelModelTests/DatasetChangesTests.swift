import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// The typed changes of a dataset since a token.
@Suite(.timeLimit(.minutes(5))) struct DatasetChangesTests {
    @Test("changes have the values at the token and now, and problems in place of values that cannot be read")
    func values() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let todo = try await client.open("s", models: [Job.self, JobList.self])
        for id in ["1", "2", "3"] {
            var job = Job(id: ModelID(id))
            job.createdAt = Timestamp(ms: 5)
            try await todo.insert(job)
        }
        let first = try await todo.changes(since: nil)
        #expect(first.isReset)
        #expect(try first.objects(of: Job.self).values.map(\.id) == ["1", "2", "3"])
        try await todo.update(ModelID<Job>("1")) { $0.title = "new" }
        try await todo.stream.publish(.update("job", id: "2", ["votes": "many"]))
        try await todo.stream.publish(.delete("job", id: "3"))
        try await todo.insert(JobList(id: "9"))
        let changes = try await todo.changes(since: first.token)
        let jobs = try changes.changes(of: Job.self)
        #expect(jobs.map(\.id) == ["1", "2", "3"] && jobs.map(\.kind) == [.updated, .updated, .deleted])
        #expect(jobs.allSatisfy { $0.origin == .own })
        #expect(jobs[0].value?.title == "new" && jobs[0].old?.title == "" && jobs[0].problem == nil)
        #expect(jobs[1].value == nil && jobs[1].old?.votes == 0 && jobs[1].problem?.kind == .value)
        #expect(jobs[2].value == nil && jobs[2].old?.createdAt == Timestamp(ms: 5) && jobs[2].problem == nil)
        #expect(try changes.changes(of: JobList.self).map(\.kind) == [.inserted])
        #expect(try changes.changes(of: JobList.self).first?.old == nil)
        #expect(throws: SchemaError.self) { try changes.changes(of: Unopened.self) }
        #expect(try await todo.changes(since: changes.token).changes(of: Job.self).isEmpty)
        await client.close()
    }

    @Test("a cascading delete hides no other change of its turn from a token and from a live query")
    func changesBeforeACascade() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let data = try await client.open("s", models: [Folder.self, Item.self, Tag.self])
        for number in 0..<20 {
            try await data.insert(Folder(ModelID("\(number)"), in: nil))
            try await data.insert(Item(ModelID("\(number)"), in: ModelID("\(number)")))
        }
        let token = try await data.changes(since: nil).token
        let query = data.query(Tag.self)
        var iterator = query.values.makeAsyncIterator()
        #expect(try await iterator.next()?.isEmpty == true)
        for number in 0..<20 {
            var tag = Tag(id: ModelID("\(number)"))
            tag.name = "new"
            // The client takes this event in the turn of the delete.
            try data.stream.enqueue(SyncEvent(try Tag.schema.insertion(of: tag)))
            try await data.delete(Folder.ID("\(number)"), cascading: \Item.folder)
            #expect(try query.rows().count == number + 1)
        }
        let changes = try await data.changes(since: token)
        #expect(try changes.changes(of: Tag.self).map(\.kind) == [ObjectChange.Kind](repeating: .inserted, count: 20))
        #expect(try changes.changes(of: Item.self).map(\.kind) == [ObjectChange.Kind](repeating: .deleted, count: 20))
        var rows = try await iterator.next()
        while rows?.count != 20 { rows = try await iterator.next() }
        await client.close()
    }

    private struct Unopened: Model {
        let id: ID
        init(id: ID) { self.id = id }
        static let schema = Schema<Unopened>("unopened") {}
    }
}
