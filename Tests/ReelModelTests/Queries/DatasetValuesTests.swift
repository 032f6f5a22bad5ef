import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Results of closures over several models.
@Suite(.timeLimit(.minutes(5))) struct DatasetValuesTests {
    private struct Refused: Error {}

    /// Runs `body` with a dataset of a device that has no nodes.
    private func offline(_ body: (Dataset) async throws -> Void) async throws {
        let client = try FakeNetwork().client(nodes: [])
        try await body(try await client.open("s", models: [Job.self, JobList.self, Tag.self]))
        await client.close()
    }

    private func list(_ name: String) -> JobList {
        var list = JobList(id: "l")
        list.name = name
        return list
    }

    @Test("a closure runs at once, and after a change of each model that it has read") func models() async throws {
        try await offline { todo in
            var iterator = todo.values { moment in
                let lists = try moment.objects(of: JobList.self).values
                return "\(lists.map(\.name)) \(try moment.rows(of: todo.query(Job.self)).count)"
            }.makeAsyncIterator()
            #expect(try await iterator.next() == "[] 0")
            try await todo.insert(Job(id: "1"))
            #expect(try await iterator.next() == "[] 1")
            try await todo.insert(list("x"))
            #expect(try await iterator.next() == "[\"x\"] 1")
            try await todo.batch { [new = list("y")] in
                try $0.replace(new)
                try $0.insert(Job(id: "2"))
            }
            #expect(try await iterator.next() == "[\"y\"] 2")
        }
    }

    @Test("a change of a model that the last run has not read is no run, and changes meanwhile are one run")
    func unreadModels() async throws {
        try await offline { todo in
            let runs = Mutex(0)
            var iterator = todo.values { moment in
                runs.withLock { $0 += 1 }
                guard let job = try moment.object(ModelID<Job>("1")) else { return "" }
                return try job.list.flatMap { try moment.resolve($0) }?.name ?? "no list"
            }.makeAsyncIterator()
            #expect(try await iterator.next() == "")
            // The lists are not read yet.
            try await todo.insert(list("x"))
            let reader = try SnapshotReader(todo.stream.content, todo.models) { try $0.object(ModelID<Job>("1")) }
            #expect(try reader.next() == .some(nil))
            try await todo.replace(list("y"))
            #expect(try reader.next() == nil)
            try await todo.insert(Job(id: "1"))
            try await todo.update(ModelID<Job>("1")) { $0.list = Ref(ModelID<JobList>("l")) }
            #expect(try await iterator.next() == "y" && runs.withLock { $0 } == 2)
            // Now they are.
            try await todo.replace(list("z"))
            #expect(try await iterator.next() == "z" && runs.withLock { $0 } == 3)
        }
    }

    @Test("a closure that reads untyped objects runs after each change, and sees that an own event is confirmed")
    func untyped() async throws {
        let client = try FakeNetwork().client()
        let todo = try await client.open("s", models: [Job.self])
        let untyped = try SnapshotReader(todo.stream.content, todo.models) { try $0.stream.object("other", id: "1") }
        #expect(try untyped.next() == .some(nil))
        try await todo.insert(Job(id: "1"))
        #expect(try untyped.next() != nil)
        var iterator = todo.values { moment in (moment.isComplete, try moment.isPending(ModelID<Job>("1"))) }
            .makeAsyncIterator()
        while let (isComplete, isPending) = try await iterator.next(), !isComplete || isPending {}
        await client.close()
    }

    @Test("the error of a closure ends its sequence, and no other") func throwing() async throws {
        try await offline { todo in
            var bad = todo.values { moment in
                if try moment.object(ModelID<Job>("1")) != nil { throw Refused() }
            }.makeAsyncIterator()
            var unknown = todo.values { try $0.objects(of: Folder.self).values.count }.makeAsyncIterator()
            var good = todo.values { try $0.objects(of: Job.self).values.count }.makeAsyncIterator()
            #expect(try await bad.next() != nil)
            #expect(try await good.next() == 0)
            await #expect(throws: SchemaError.self) { try await unknown.next() }
            try await todo.insert(Job(id: "1"))
            await #expect(throws: Refused.self) { try await bad.next() }
            #expect(try await bad.next() == nil)
            #expect(try await good.next() == 1)
        }
    }

    @Test("a loop that waits ends when its task is cancelled") func cancelled() async throws {
        try await offline { todo in
            let hasBegun = Mutex(false)
            let values = todo.values { try $0.objects(of: Job.self).values.count }
            let task = Task { for try await _ in values { hasBegun.withLock { $0 = true } } }
            try await eventually { hasBegun.withLock { $0 } }
            task.cancel()
            try await task.value
        }
    }

    @Test("a sequence does not hold the client, and ends with `closed` after its release") func release() async throws {
        let hasBegun = Mutex(false)
        let task: Task<Void, any Error>
        weak var released: SyncClient?
        do {
            let client = try FakeNetwork().client(nodes: [])
            released = client
            let values = try await client.open("s", models: [Job.self]).values { try $0.objects(of: Job.self).values }
            task = Task { for try await _ in values { hasBegun.withLock { $0 = true } } }
            try await eventually { hasBegun.withLock { $0 } }
        }
        let error = await #expect(throws: ReelError.self) { try await task.value }
        #expect(error?.code == .closed)
        try await eventually { released == nil }
    }
}
