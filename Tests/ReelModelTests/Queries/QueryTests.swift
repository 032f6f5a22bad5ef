import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Queries of one device, which is offline.
@Suite(.timeLimit(.minutes(5))) struct QueryTests {
    private struct Refused: Error {}

    /// Runs `body` with a dataset of a device that has no nodes.
    private func offline(_ body: (Dataset) async throws -> Void) async throws {
        let client = try FakeNetwork().client(nodes: [])
        try await body(try await client.open("s", models: [Job.self, JobList.self]))
        await client.close()
    }

    private func fill(_ todo: Dataset, _ count: Int, _ edit: (Int, inout Job) -> Void) async throws {
        for number in 0..<count {
            var job = Job(id: ModelID("\(number)"))
            edit(number, &job)
            try await todo.insert(job)
        }
    }

    private func ids(_ rows: some Sequence<Job>) -> [String] { rows.map(\.id.text) }

    // MARK: Now

    @Test("rows are filtered, sorted by several properties and limited; equal ones are sorted by id")
    func rows() async throws {
        try await offline { todo in
            try await fill(todo, 6) { number, job in
                (job.votes, job.title) = (number % 2, number < 4 ? "a" : "b")
                job.isDone = number == 0
                job.due = number > 2 ? Timestamp(ms: -number) : nil
            }
            let all = todo.query(Job.self)
            #expect(try ids(all.rows()) == ["0", "1", "2", "3", "4", "5"])
            let open = all.filter { !$0.isDone }.sort(by: \.votes, \.title)
            #expect(try ids(open.rows()) == ["2", "4", "1", "3", "5"])
            #expect(try ids(open.limit(2).rows()) == ["2", "4"])
            #expect(try open.limit(-1).rows().isEmpty && open.rows().changes.insertions == [0, 1, 2, 3, 4])
            let down = all.sort(by: \.title, order: .descending).sort(by: \.votes)
            #expect(try ids(down.rows()) == ["4", "5", "0", "2", "1", "3"])
            #expect(try ids(all.sort(by: \.due).rows()) == ["0", "1", "2", "5", "4", "3"])
            #expect(try ids(all.sort(by: \.due, order: .descending).rows()) == ["3", "4", "5", "0", "1", "2"])
            #expect(try ids(all.sort(by: \.isDone, order: .descending).rows()) == ["0", "1", "2", "3", "4", "5"])
            #expect(try ids(all.where(\.votes, equals: 1).where(\.title, equals: "a").rows()) == ["1", "3"])
            #expect(try open.limit(2).count() == 5 && all.count(groupedBy: \.title).counts == ["a": 4, "b": 2])
            #expect(try all.rows().isComplete == false)
        }
    }

    @Test("rows are sorted by the places of a list") func places() async throws {
        try await offline { todo in
            try await fill(todo, 3) { _, _ in }
            try await todo.move(ModelID<Job>("0"), between: nil, and: nil)
            try await todo.move(ModelID<Job>("2"), between: nil, and: ModelID<Job>("0"))
            try await todo.move(ModelID<Job>("1"), between: ModelID<Job>("2"), and: ModelID<Job>("0"))
            #expect(try ids(todo.query(Job.self).sort(by: \.rank).rows()) == ["2", "1", "0"])
        }
    }

    @Test("pages follow a cursor, which is stored, and which outlives the row") func pages() async throws {
        try await offline { todo in
            try await fill(todo, 7) { number, job in
                (job.votes, job.due) = (number % 3, number < 2 ? nil : Timestamp(ms: 5))
            }
            let query = todo.query(Job.self).sort(by: \.votes, order: .descending).sort(by: \.due).limit(3)
            let expected = try ids(query.limit(9).rows())
            for isRunning in [false, true] {
                var iterator = query.values.makeAsyncIterator()
                if isRunning { _ = try await iterator.next() }
                var page = try query.page()
                var found = ids(page.rows)
                while let next = page.next {
                    page = try query.page(after: next)
                    found += ids(page.rows)
                }
                #expect(found == expected && page.rows.count == 1)
            }
            let next = try #require(try query.page().next)
            #expect(next.keys == [1, nil] && next.id == expected[2])
            try await todo.delete(ModelID<Job>(next.id))
            #expect(try ids(query.page(after: next).rows) == Array(expected[3...5]))
            #expect(throws: FieldValueError.self) { try query.sort(by: \.title).page(after: next) }
            let wrong = QueryCursor(keys: ["x", "y"], id: "1")
            #expect(throws: FieldValueError.self) { try query.page(after: wrong) }
        }
    }

    @Test("several reads of one moment are typed") func moment() async throws {
        try await offline { todo in
            let list = JobList(id: "l")
            try await fill(todo, 2) { number, job in job.list = number == 0 ? Ref(list) : nil }
            try await todo.insert(list)
            let query = todo.query(Job.self).where(\.list, equals: Ref(list))
            try todo.read { (moment) throws in
                #expect(try moment.rows(of: query).values == [moment.object("0")])
                #expect(try moment.objects(of: JobList.self).values == [list])
                #expect(try moment.resolve(Ref(list)) == list)
                #expect(moment.stream.id == "s")
            }
        }
    }

    // MARK: Errors

    @Test("objects that the model cannot read are problems, and no rows") func problems() async throws {
        try await offline { todo in
            try await fill(todo, 1) { _, _ in }
            var iterator = todo.query(Job.self).values.makeAsyncIterator()
            #expect(try await iterator.next()?.problems.isEmpty == true)
            try await todo.stream.publish(.insert("job", id: "9", ["createdAt": 5, "votes": "many"]))
            let rows = try #require(try await iterator.next())
            #expect(rows.problems.map(\.object.id) == ["9"] && ids(rows) == ["0"])
            #expect(rows.changes.isEmpty)
            #expect(try todo.query(Job.self).rows().problems == rows.problems)
            try await todo.replace(Job(id: "0"))
            try await todo.stream.publish(.update("job", id: "9", ["votes": 1]))
            let repaired = try #require(try await iterator.next())
            #expect(repaired.problems.isEmpty && ids(repaired) == ["0", "9"])
        }
    }

    @Test("a filter that throws ends its query with the error, and no other") func throwingFilter() async throws {
        try await offline { todo in
            try await fill(todo, 2) { _, _ in }
            let query = todo.query(Job.self).filter { if $0.title == "bad" { throw Refused() } else { true } }
            var good = todo.query(Job.self).values.makeAsyncIterator()
            var bad = query.values.makeAsyncIterator()
            var counts = query.counts(groupedBy: \.label).makeAsyncIterator()
            #expect(try await good.next()?.count == 2)
            #expect(try await bad.next()?.count == 2)
            #expect(try await counts.next()?.total == 2)
            try await todo.update(ModelID<Job>("1")) { $0.title = "bad" }
            await #expect(throws: Refused.self) { try await bad.next() }
            #expect(try await bad.next() == nil)
            await #expect(throws: Refused.self) { try await counts.next() }
            #expect(try await good.next()?.changes.updates == [1])
            #expect(throws: Refused.self) { try query.rows() }
        }
    }

    @Test("a filter can read the dataset, and a query too") func nested() async throws {
        try await offline { todo in
            try await fill(todo, 3) { number, job in job.votes = number }
            let top = todo.query(Job.self).sort(by: \.votes, order: .descending).limit(1)
            let query = todo.query(Job.self).filter { try top.rows().first?.id == $0.id }
            var iterator = query.values.makeAsyncIterator()
            #expect(try await iterator.next().map(ids) == ["2"])
            #expect(try ids(query.rows()) == ["2"])
        }
    }

    @Test("a query of a model that the dataset was not opened with is refused") func unknownModel() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let todo = try await client.open("s", models: [JobList.self])
        #expect(throws: SchemaError.self) { try todo.query(Job.self).rows() }
        await #expect(throws: SchemaError.self) { for try await _ in todo.query(Job.self).values {} }
        await #expect(throws: SchemaError.self) { try await todo.query(Job.self).observed() }
        await client.close()
    }

    @Test("a sequence ends with `closed` after the stream was closed, evicted or forgotten, or the client was closed")
    func closed() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let ends: [@Sendable (Dataset) async throws -> Void] = [
            { await $0.stream.close() },
            { try await client.evict($0.stream.id) },
            { try await client.forget($0.stream.id) },
            { _ in await client.close() },
        ]
        for (number, end) in ends.enumerated() {
            let todo = try await client.open("s\(number)", models: [Job.self])
            var iterator = todo.query(Job.self).values.makeAsyncIterator()
            #expect(try await iterator.next()?.isEmpty == true)
            let task = Task { () -> ErrorCode? in
                do {
                    for try await _ in todo.query(Job.self).values {}
                    return nil
                } catch let error as ReelError {
                    return error.code
                }
            }
            try await end(todo)
            let error = await #expect(throws: ReelError.self) { try await iterator.next() }
            #expect(error?.code == .closed)
            #expect(try await task.value == .closed)
            #expect(throws: ReelError.self) { try todo.query(Job.self).rows() }
        }
    }

    // MARK: After each change

    @Test("values begin with the present rows, and each later element has the changes since the one before")
    func values() async throws {
        try await offline { todo in
            try await fill(todo, 4) { number, job in job.votes = number }
            let query = todo.query(Job.self).filter { !$0.isDone }.sort(by: \.votes).limit(3)
            var iterator = query.values.makeAsyncIterator()
            let first = try #require(try await iterator.next())
            #expect(ids(first) == ["0", "1", "2"] && first.changes.insertions == [0, 1, 2])
            try await todo.update(ModelID<Job>("1")) { $0.isDone = true }
            let second = try #require(try await iterator.next())
            #expect(ids(second) == ["0", "2", "3"])
            #expect(second.changes == QueryChanges(removals: [1], insertions: [2]))
            // Both changes come together, because the reader did not ask in between.
            try await todo.update(ModelID<Job>("0")) { $0.votes = 9 }
            try await todo.update(ModelID<Job>("2")) { $0.title = "x" }
            let third = try #require(try await iterator.next())
            #expect(ids(third) == ["2", "3", "0"])
            #expect(third.changes == QueryChanges(moves: [.init(from: 0, to: 2)], updates: [0, 2]))
            // A change outside the rows is no element.
            try await todo.insert(with(Job(id: "7")) { $0.votes = 99 })
            try await todo.delete(ModelID<Job>("2"))
            #expect(try await iterator.next()?.changes == QueryChanges(removals: [0], insertions: [2]))
        }
    }

    @Test("a filter is called once for each changed object") func calls() async throws {
        try await offline { todo in
            try await fill(todo, 50) { number, job in job.votes = number }
            let calls = Mutex(0)
            let query = todo.query(Job.self).filter { _ in
                calls.withLock { $0 += 1 }
                return true
            }.sort(by: \.votes).limit(10)
            var (one, two) = (query.values.makeAsyncIterator(), query.values.makeAsyncIterator())
            _ = try await (one.next(), two.next())
            #expect(calls.withLock { $0 } == 50)
            try await todo.update(ModelID<Job>("3")) { $0.votes = 100 }
            _ = try await (one.next(), two.next())
            #expect(calls.withLock { $0 } == 51)
            let before = calls.withLock { $0 }
            for id in ["4", "5", "6"] { try await todo.update(ModelID<Job>(id)) { $0.title = "x" } }
            _ = try await (one.next(), two.next(), query.rows())
            #expect(calls.withLock { $0 } == before + 3)
        }
    }

    @Test("a query whose order another query uses reads only as far as its limit, and then follows all changes")
    func sharedOrder() async throws {
        try await offline { todo in
            try await fill(todo, 50) { number, job in job.votes = number }
            var other = todo.query(Job.self).sort(by: \.votes).values.makeAsyncIterator()
            _ = try await other.next()
            try await todo.update(ModelID<Job>("0")) { $0.votes = -1 }
            _ = try await other.next()
            let calls = Mutex(0)
            let query = todo.query(Job.self).filter { job in
                calls.withLock { $0 += 1 }
                return job.votes % 2 == 0
            }.sort(by: \.votes).limit(3)
            var iterator = query.values.makeAsyncIterator()
            #expect(try await iterator.next().map(ids) == ["2", "4", "6"])
            #expect(calls.withLock { $0 } < 10)
            try await todo.delete(ModelID<Job>("4"))
            #expect(try await iterator.next().map(ids) == ["2", "6", "8"])
            try await todo.update(ModelID<Job>("49")) { $0.votes = 0 }
            #expect(try await iterator.next().map(ids) == ["49", "2", "6"])
            #expect(calls.withLock { $0 } <= 52)
        }
    }

    @Test("counts follow the changes") func counts() async throws {
        try await offline { todo in
            try await fill(todo, 4) { number, job in job.label = number == 0 ? .urgent : .later }
            var iterator = todo.query(Job.self).filter { !$0.isDone }.limit(1).counts(groupedBy: \.label)
                .makeAsyncIterator()
            #expect(try await iterator.next()?.counts == [.urgent: 1, .later: 3])
            try await todo.update(ModelID<Job>("0")) { $0.label = .later }
            #expect(try await iterator.next()?.counts == [.later: 4])
            try await todo.update(ModelID<Job>("1")) { $0.title = "x" }
            try await todo.update(ModelID<Job>("1")) { $0.isDone = true }
            #expect(try await iterator.next()?[.later] == 3)
        }
    }

    @Test("queries share decoded objects and indexes, which end with the last query") func sharing() async throws {
        try await offline { todo in
            try await fill(todo, 4) { number, job in job.votes = number % 2 }
            weak var live: LiveDataset?
            do {
                var one = todo.query(Job.self).where(\.votes, equals: 1).values.makeAsyncIterator()
                var two = todo.query(Job.self).where(\.votes, equals: 0).values.makeAsyncIterator()
                let (first, second) = (try await one.next(), try await two.next())
                #expect(first.map(ids) == ["1", "3"] && second.map(ids) == ["0", "2"])
                live = todo.live.present
                #expect(live != nil)
                try await todo.update(ModelID<Job>("0")) { $0.votes = 1 }
                #expect(try await one.next().map(ids) == ["0", "1", "3"])
                #expect(try await two.next().map(ids) == ["2"])
                #expect(try ids(todo.query(Job.self).where(\.votes, equals: 1).rows()) == ["0", "1", "3"])
            }
            #expect(live == nil)
        }
    }

    @Test("a loop that waits ends when its task is cancelled") func cancelled() async throws {
        try await offline { todo in
            let values = todo.query(Job.self).values
            let hasBegun = Mutex(false)
            let task = Task { for try await _ in values { hasBegun.withLock { $0 = true } } }
            try await eventually { hasBegun.withLock { $0 } }
            task.cancel()
            try await task.value
        }
    }

    @Test("a sequence does not hold the client, and ends with `closed` after its release") func release() async throws {
        let values: QuerySequence<QueryRows<Job>>
        let hasBegun = Mutex(false)
        let task: Task<Void, any Error>
        weak var released: SyncClient?
        do {
            let client = try FakeNetwork().client(nodes: [])
            released = client
            values = try await client.open("s", models: [Job.self]).query(Job.self).values
            task = Task { for try await _ in values { hasBegun.withLock { $0 = true } } }
            try await eventually { hasBegun.withLock { $0 } }
        }
        let error = await #expect(throws: ReelError.self) { try await task.value }
        #expect(error?.code == .closed)
        try await eventually { released == nil }
    }

    private func with(_ job: Job, _ edit: (inout Job) -> Void) -> Job {
        var job = job
        edit(&job)
        return job
    }
}
