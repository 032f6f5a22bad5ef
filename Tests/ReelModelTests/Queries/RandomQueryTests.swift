import Foundation
import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Random edits and queries of two devices, with cuts and restarts.
@Suite(.timeLimit(.minutes(10))) struct RandomQueryTests {
    /// Swift 6.3 finds `Job.ID` in place of `ModelID<Job>` in the declaration of `Job`, unless a property comes first.
    private let new = Job(id: "new")

    /// A random query, with the same query as plain functions over all objects.
    private struct Case {
        var query: Query<Job>
        var isIncluded: (Job) -> Bool = { _ in true }
        /// The comparisons by significance: negative if the first value comes before the second.
        var comparisons: [(Job, Job) -> Int] = []
        var rowsMax = Int.max

        init(_ todo: Dataset, _ random: inout SeededNumbers) {
            query = todo.query(Job.self)
            if random.oneIn(2) { filter(&random) }
            if random.oneIn(3) { equal(&random) }
            for _ in 0..<random.below(3) { sort(&random) }
            if random.oneIn(3) { filter(&random) }
            if random.oneIn(2) {
                rowsMax = random.below(6)
                query = query.limit(rowsMax)
            }
        }

        private mutating func filter(_ random: inout SeededNumbers) {
            let (before, votesMin) = (isIncluded, random.below(5) - 3)
            if random.oneIn(2) {
                query = query.filter { !$0.isDone }
                isIncluded = { before($0) && !$0.isDone }
            } else {
                query = query.filter { $0.votes >= votesMin }
                isIncluded = { before($0) && $0.votes >= votesMin }
            }
        }

        private mutating func equal(_ random: inout SeededNumbers) {
            let (before, list, label) = (isIncluded, Ref(ModelID<JobList>("list 1")), random.pick(Label.allCases))
            if random.oneIn(2) {
                query = query.where(\.list, equals: list)
                isIncluded = { before($0) && $0.list == list }
            } else {
                query = query.where(\.label, equals: label)
                isIncluded = { before($0) && $0.label == label }
            }
        }

        private mutating func sort(_ random: inout SeededNumbers) {
            let isDescending = random.oneIn(2)
            let order: Query<Job>.Direction = isDescending ? .descending : .ascending
            func compare<Value: Comparable>(_ value: @escaping (Job) -> Value) {
                comparisons.append { a, b in
                    let result = value(a) < value(b) ? -1 : value(b) < value(a) ? 1 : 0
                    return isDescending ? -result : result
                }
            }
            switch random.below(5) {
            case 0:
                query = query.sort(by: \.votes, \.title, order: order)
                compare(\.votes)
                compare(\.title)
            case 1:
                query = query.sort(by: \.due, order: order)
                compare { $0.due?.ms ?? Int.min }
            case 2:
                query = query.sort(by: \.isDone, order: order)
                compare { $0.isDone ? 1 : 0 }
            case 3:
                query = query.sort(by: \.rank, order: order)
                compare(\.rank)
            default:
                query = query.sort(by: \.priority, order: order)
                compare(\.priority)
            }
        }

        func matching(_ all: [Job]) -> [Job] { all.filter(isIncluded) }

        func rows(of all: [Job]) -> [Job] {
            let sorted = matching(all).sorted { a, b in
                for comparison in comparisons {
                    let result = comparison(a, b)
                    if result != 0 { return result < 0 }
                }
                return a.id < b.id
            }
            return Array(sorted.prefix(rowsMax))
        }
    }

    /// A query that runs on a device.
    private final class Running {
        let test: Case
        let rows: RowsReader<Job>
        let counts: CountsReader<Job, Label>
        var values: [Job] = []
        var problems: [ModelProblem] = []
        var pending: Set<Job.ID> = []
        var groups: [Label: Int] = [:]

        init(_ test: Case) throws {
            self.test = test
            rows = try RowsReader(QuerySource(test.query))
            counts = try CountsReader(QuerySource(test.query), \.label)
        }

        /// Takes what is new, and returns true if there was anything.
        func follow(_ seed: UInt64) throws -> Bool {
            let (rows, counts) = (try rows.next(), try counts.next())
            if let rows {
                #expect(rows.changes.applied(to: values, rows.values, ==), "REEL_SEED=\(seed)")
                (values, problems, pending) = (rows.values, rows.problems, rows.pending)
            }
            if let counts { groups = counts.counts }
            return rows != nil || counts != nil
        }

        func check(_ todo: Dataset, _ seed: UInt64) throws {
            var (all, waiting): (ModelObjects<Job>, Set<Job.ID>)
            repeat {
                _ = try follow(seed)
                all = try todo.objects(of: Job.self)
                waiting = Set(try todo.stream.objects("job").filter(\.isPending).map { ModelID($0.name.id) })
                // Otherwise something has changed in between.
            } while try follow(seed)
            #expect(values == test.rows(of: all.values), "REEL_SEED=\(seed)")
            #expect(problems == all.problems, "REEL_SEED=\(seed)")
            #expect(pending == waiting.intersection(values.map(\.id)), "REEL_SEED=\(seed)")
            let expected = Dictionary(grouping: test.matching(all.values), by: \.label).mapValues(\.count)
            #expect(groups == expected, "REEL_SEED=\(seed)")
        }
    }

    private final class Device {
        let node: String
        let seed: UInt64
        let path = FileManager.default.temporaryDirectory.path + "/reel-query-\(UUID().uuidString)"
        var client: SyncClient
        var todo: Dataset
        var running: [Running] = []

        init(_ network: FakeNetwork, _ node: String, seed: UInt64) async throws {
            (self.node, self.seed) = (node, seed)
            client = try network.client(nodes: [node], store: .file(path), seed: seed)
            todo = try await client.open("s", models: [Job.self, JobList.self])
        }

        func restart(_ network: FakeNetwork) async throws {
            await client.close()
            for query in running {
                let error = #expect(throws: ReelError.self) { try query.rows.next() }
                #expect(error?.code == .closed)
            }
            running = []
            client = try network.client(nodes: [node], store: .file(path), seed: seed)
            todo = try await client.open("s", models: [Job.self, JobList.self])
        }

        deinit {
            for end in ["", "-wal", "-shm", "-lock"] { try? FileManager.default.removeItem(atPath: path + end) }
        }
    }

    @Test("rows that follow the changes equal rows that are computed from all objects") func random() async throws {
        try await Seeds.runAsync(15) { seed in
            var random = SeededNumbers(seed)
            let network = try FakeNetwork()
            let devices = [try await Device(network, "a", seed: 5), try await Device(network, "b", seed: 6)]
            for _ in 0..<60 {
                let device = random.pick(devices)
                if device.running.count < 4, random.oneIn(2) {
                    device.running.append(try Running(Case(device.todo, &random)))
                }
                if random.oneIn(12), !device.running.isEmpty {
                    device.running.remove(at: random.below(device.running.count))
                }
                if random.oneIn(12) { try await device.restart(network) }
                if random.oneIn(8) {
                    let down = Set(["a", "b"].filter { _ in random.oneIn(2) })
                    try await network.on { network in
                        network.down = []
                        for node in down { network.kill(node) }
                    }
                }
                try await edit(device.todo, &random)
                for device in devices where random.oneIn(2) {
                    for query in device.running { try query.check(device.todo, seed) }
                    try checkOnce(Case(device.todo, &random), device.todo, seed)
                }
            }
            try await network.on { $0.down = [] }
            for device in devices { try await device.todo.stream.flush(deadline: .seconds(60)) }
            let head = try await network.on { $0.head }
            for device in devices {
                try await device.todo.stream.waitUntil(seq: head)
                for query in device.running { try query.check(device.todo, seed) }
            }
            let ends = try devices.map { try $0.todo.objects(of: Job.self) }
            #expect(ends[0] == ends[1], "REEL_SEED=\(seed)")
            for device in devices { await device.client.close() }
        }
    }

    private func edit(_ todo: Dataset, _ random: inout SeededNumbers) async throws {
        let id = ModelID<Job>("\(random.below(12))")
        do {
            switch random.below(12) {
            case 0: try await todo.delete(id)
            case 1: try await todo.stream.publish(.update("job", id: id.text, ["priority": "high"]))
            case 2: try await todo.stream.publish(.update("job", id: id.text, ["priority": 2]))
            default:
                guard let value = try? todo.object(id) else {
                    return try await insert(new, todo, &random)
                }
                var edited = value
                edited.change(&random)
                try await todo.save(edited, changedFrom: value)
            }
        } catch let error as ReelError {
            // The object does not exist, does not exist any more, or exists since the read.
            #expect([.deleted, .noObject, .guard].contains(error.code))
        }
    }

    private func insert(_ value: Job, _ todo: Dataset, _ random: inout SeededNumbers) async throws {
        let id = random.oneIn(3) ? value.id : ModelID<Job>("\(random.below(12))")
        guard try todo.stream.object("job", id: id.text) == nil else { return }
        var job = Job(id: id)
        job.change(&random)
        try await todo.insert(job)
    }

    /// Checks the reads of one moment: rows, pages and counts.
    private func checkOnce(_ test: Case, _ todo: Dataset, _ seed: UInt64) throws {
        let all = try todo.objects(of: Job.self).values
        let found = (try test.query.rows().values, try test.query.count(), try pages(test))
        // A change in between is checked in another step.
        guard try todo.objects(of: Job.self).values == all else { return }
        let expected = test.rows(of: all)
        #expect(found.0 == expected, "REEL_SEED=\(seed)")
        #expect(found.1 == test.matching(all).count, "REEL_SEED=\(seed)")
        var unlimited = test
        unlimited.rowsMax = .max
        #expect(found.2 == (test.rowsMax == 0 ? [] : unlimited.rows(of: all)), "REEL_SEED=\(seed)")
    }

    private func pages(_ test: Case) throws -> [Job] {
        var page = try test.query.page()
        var found = page.rows.values
        while let next = page.next {
            let stored = try JSONDecoder().decode(QueryCursor.self, from: JSONEncoder().encode(next))
            page = try test.query.page(after: stored)
            found += page.rows.values
        }
        return found
    }

    @Test("the confirmation of an own event changes only that the row waits") func confirmation() async throws {
        let client = try FakeNetwork().client()
        let todo = try await client.open("s", models: [Job.self])
        let reader = try RowsReader(QuerySource(todo.query(Job.self)))
        _ = try await todo.insert(new).outcome()
        while let rows = try reader.next(), !rows.isComplete || rows.isEmpty {}
        let write = try await todo.update(new.id) { $0.votes += 1 }
        let changed = try #require(try reader.next())
        #expect(changed.changes == QueryChanges(updates: [0]))
        _ = try await write.outcome()
        var confirmed = changed
        while !confirmed.pending.isEmpty {
            if let rows = try reader.next() { confirmed = rows } else { await Task.yield() }
        }
        #expect(confirmed.changes == QueryChanges(updates: [0]))
        #expect(confirmed.values == changed.values)
        #expect(try reader.next() == nil)
        await client.close()
    }

    @Test("rows never mix two moments, while two devices write and read") func moments() async throws {
        let network = try FakeNetwork()
        let clients = [try network.client(nodes: ["a"], seed: 5), try network.client(nodes: ["b"], seed: 6)]
        var datasets: [Dataset] = []
        for client in clients { datasets.append(try await client.open("s", models: [Job.self], from: .beginning)) }
        let ids = (0..<20).map { ModelID<Job>("\($0)") }
        _ = try await datasets[0].batch { batch in for id in ids { try batch.insert(Job(id: id)) } }.outcome()
        try await eventually { try datasets[1].query(Job.self).count() == 20 }
        let elements = Elements()
        var (readers, writers): ([Task<Void, any Error>], [Task<Void, any Error>]) = ([], [])
        for (number, todo) in datasets.enumerated() {
            let query = todo.query(Job.self)
            for query in [query, query.filter { $0.votes != 0 }] {
                readers.append(Task { try await Self.read(query, elements) })
            }
            writers.append(Task { try await Self.write(todo, ids, SeededNumbers(UInt64(number))) })
        }
        for writer in writers { try await writer.value }
        for client in clients { await client.close() }
        for reader in readers { await #expect(throws: ReelError.self) { try await reader.value } }
        #expect(elements.count.withLock { $0 } > 20)
    }

    private final class Elements: Sendable {
        let count = Mutex(0)
    }

    private static func read(_ query: Query<Job>, _ elements: Elements) async throws {
        for try await rows in query.values {
            #expect(rows.map(\.votes).reduce(0, +) == 0)
            elements.count.withLock { $0 += 1 }
        }
    }

    private static func write(_ todo: Dataset, _ ids: [ModelID<Job>], _ random: SeededNumbers) async throws {
        var random = random
        for _ in 0..<300 {
            let (from, to) = (random.pick(ids), random.pick(ids))
            try await todo.batch { batch in
                try batch.update(from) { $0.votes -= 1 }
                try batch.update(to) { $0.votes += 1 }
            }
            #expect(try todo.query(Job.self).rows().map(\.votes).reduce(0, +) == 0)
        }
    }
}
