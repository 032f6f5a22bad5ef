import Foundation
import ReelClient
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Measures queries: `REEL_BENCH=1 swift test -c release -Xswiftc -enable-testing --filter QueryBenchmarks`.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["REEL_BENCH"] != nil))
@MainActor struct QueryBenchmarks {
    private struct Item: Model {
        let id: ModelID<Item>
        var title = ""
        var note = ""
        var isDone = false
        var votes = 0
        var priority = 0.0
        var createdAt = Timestamp(ms: 0)
        var label = Label.none
        var owner: String?
        var list: Ref<JobList>?
        var place = 0

        init(id: ModelID<Item>) { self.id = id }

        static let schema = Schema<Item>("item") {
            Field("title", \.title)
            Text("note", \.note)
            Field("done", \.isDone)
            Counter("votes", \.votes)
            Field("priority", \.priority)
            Field("createdAt", \.createdAt)
            Field("label", \.label)
            Field("owner", \.owner)
            Reference("list", \.list)
            Field("place", \.place)
        }

        static func numbered(_ number: Int) -> Item {
            var item = Item(id: ModelID("item-\(number * 7_919 % 1_000_003)"))
            (item.title, item.note) = ("Title of the item \(number)", "A note")
            (item.isDone, item.votes, item.priority) = (number % 4 == 0, number % 1_000, Double(number) / 3)
            (item.createdAt, item.label) = (Timestamp(ms: 1_700_000_000_000 + number), .later)
            (item.owner, item.list) = ("ann", Ref(JobList.ID("list-\(number % 50)")))
            item.place = number * 31 % 100_003
            return item
        }
    }

    private static func ms(_ duration: Duration) -> String {
        let ms = Double(duration.components.attoseconds) / 1e15 + Double(duration.components.seconds) * 1e3
        return String(format: "%.3f ms", ms)
    }

    private func time<T>(_ what: String, _ body: () throws -> T) rethrows -> T {
        let start = ContinuousClock.now
        let result = try body()
        print("\(what): \(Self.ms(ContinuousClock.now - start))")
        return result
    }

    /// Runs `body` with a device that has read a stream from a node. `count`: the number of objects in the stream.
    private func device(
        _ count: Int,
        inFile: Bool,
        _ body: (Dataset, FakeNetwork) async throws -> Void
    ) async throws {
        let network = try FakeNetwork()
        let path = FileManager.default.temporaryDirectory.path + "/reel-bench-\(UUID().uuidString)"
        defer { for end in ["", "-wal", "-shm", "-lock"] { try? FileManager.default.removeItem(atPath: path + end) } }
        let events = try (0..<count).map { SyncEvent(try Item.schema.insertion(of: .numbered($0))) }
        try await network.on { network in for event in events { network.author(event) } }
        let client = try network.client(store: inFile ? .file(path) : .memory)
        let todo = try await client.open("s", models: [Item.self])
        try await eventually("the stream is up to date") { todo.stream.status.isUpToDate }
        try await body(todo, network)
        await client.close()
    }

    @Test("decode 100,000 objects of 10 fields") func decode() async throws {
        try await device(100_000, inFile: true) { todo, _ in
            for _ in 0..<3 {
                let objects = try time("read 100,000 untyped objects") { try todo.stream.objects("item") }
                let start = ContinuousClock.now
                var sum = 0
                for object in objects { sum += try Item.schema.value(of: object).votes }
                let seconds = (ContinuousClock.now - start) / .seconds(1)
                print("decode: \(Self.ms(.seconds(seconds))), \(Int(1_000_000 / seconds)) fields/s (\(sum))")
                let all = try time("read and decode") { try todo.objects(of: Item.self) }
                #expect(all.values.count == 100_000)
            }
        }
    }

    @Test("first result") func first() async throws {
        try await device(100_000, inFile: true) { todo, _ in
            let query = todo.query(Item.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(200)
            for _ in 0..<2 { _ = try time("one read, nothing is decoded") { try query.rows() } }
            let iterators = try time("first rows, nothing is decoded") { try RowsReader(QuerySource(query)) }
            _ = try iterators.next()
            try time("preparation for changes") { _ = try iterators.next() }
            for _ in 0..<3 {
                let again = todo.query(Item.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(200)
                try time("first rows, index in use") { _ = try RowsReader(QuerySource(again)).next() }
                try time("one read, index in use") { _ = try again.rows() }
                let other = todo.query(Item.self).filter { $0.isDone }.sort(by: \.createdAt).limit(200)
                try time("first rows, objects in use, another order") { _ = try RowsReader(QuerySource(other)).next() }
                try time("one read, objects in use, another order") { _ = try other.rows() }
            }
            let list = Ref(ModelID<JobList>("list-7"))
            let some = todo.query(Item.self).where(\.list, equals: list).sort(by: \.place)
            let held = try time("first rows by an index on a property, which is made") {
                try RowsReader(QuerySource(some))
            }
            let more = todo.query(Item.self).where(\.list, equals: Ref(ModelID<JobList>("list-8"))).sort(by: \.place)
            try time("first rows by an index on a property") { _ = try RowsReader(QuerySource(more)).next() }
            _ = held
            try sqlite()
        }
    }

    private func sqlite() throws {
        let path = FileManager.default.temporaryDirectory.path + "/reel-bench-\(UUID().uuidString)"
        defer { for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) } }
        let connection = try Connection(path: path, mode: .create)
        try connection.execute(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, note TEXT, done INTEGER, votes INTEGER, priority REAL,
            createdAt INTEGER, label TEXT, owner TEXT, list TEXT, place INTEGER) WITHOUT ROWID;
            CREATE INDEX open ON item (done, votes, place, id);
            """
        )
        try connection.transaction { () throws(SQLiteError) in
            let insert = try connection.prepare("INSERT INTO item VALUES (?,?,?,?,?,?,?,?,?,?,?)")
            for item in (0..<100_000).map(Item.numbered) {
                insert.bind(1, item.id.text)
                insert.bind(2, item.title)
                insert.bind(3, item.note)
                insert.bind(4, Int64(item.isDone ? 1 : 0))
                insert.bind(5, Int64(item.votes))
                insert.bind(6, item.priority)
                insert.bind(7, Int64(item.createdAt.ms))
                insert.bind(8, item.label.rawValue)
                insert.bind(9, item.owner)
                insert.bind(10, item.list?.id.text)
                insert.bind(11, Int64(item.place))
                try insert.run()
                insert.reset()
            }
        }
        func items(_ sql: String) throws -> [Item] {
            let select = try connection.prepare(sql)
            var items: [Item] = []
            while try select.step() {
                var item = Item(id: ModelID(select.text(0)))
                (item.title, item.note) = (select.text(1), select.text(2))
                (item.isDone, item.votes) = (select.integer(3) != 0, Int(select.integer(4)))
                (item.priority, item.createdAt) = (select.double(5), Timestamp(ms: Int(select.integer(6))))
                (item.label, item.owner) = (Label(rawValue: select.text(7)) ?? .none, select.optionalText(8))
                item.list = select.optionalText(9).map { Ref(ModelID<JobList>($0)) }
                item.place = Int(select.integer(10))
                items.append(item)
            }
            return items
        }
        for _ in 0..<3 {
            let window = "SELECT * FROM item WHERE done = 0 ORDER BY votes, place, id LIMIT 200"
            try time("SQLite: 200 rows by an index") { _ = try items(window) }
            try time("SQLite: all rows") { _ = try items("SELECT * FROM item") }
        }
    }

    @Test("one change until the rows are on the main actor", arguments: [10_000, 100_000], [false, true])
    func change(count: Int, inFile: Bool) async throws {
        try await device(count, inFile: inFile) { todo, network in
            let query = todo.query(Item.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(200)
            var iterator = query.values.makeAsyncIterator()
            let first = try #require(try await iterator.next())
            var latencies: (own: [Duration], remote: [Duration]) = ([], [])
            var rows = first
            // The first change makes the index of the order.
            try await todo.stream.publish(.update("item", id: first[0].id.text, ["owner": "eve"]))
            rows = try #require(try await iterator.next())
            while !rows.pending.isEmpty { rows = try #require(try await iterator.next()) }
            for number in 0..<2_000 {
                let item = rows[number * 37 % 200]
                let isOwn = number % 2 == 0
                let event = SyncEvent(.update("item", id: item.id.text, ["place": .init(number), "owner": "bob"]))
                async let start = Self.make(isOwn, item.id, number, event, todo, network)
                rows = try #require(try await iterator.next())
                let end = ContinuousClock.now
                let latency = end - (try await start)
                if isOwn { latencies.own.append(latency) } else { latencies.remote.append(latency) }
                // The confirmation of an own event changes its row once more.
                while !rows.pending.isEmpty { rows = try #require(try await iterator.next()) }
                try await eventually("the event is confirmed") { todo.stream.status.pendingCount == 0 }
            }
            for (what, times) in [("own", latencies.own), ("remote", latencies.remote)] {
                let sorted = times.sorted()
                let at = { (part: Double) in Self.ms(sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]) }
                print(
                    "\(count) objects, \(inFile ? "file" : "memory"), \(what) change: p50 \(at(0.5)), p90 \(at(0.9)),"
                        + " p99 \(at(0.99)), max \(at(1))"
                )
            }
        }
    }

    @concurrent private static func make(
        _ isOwn: Bool,
        _ id: ModelID<Item>,
        _ number: Int,
        _ event: SyncEvent,
        _ todo: Dataset,
        _ network: FakeNetwork
    ) async throws -> ContinuousClock.Instant {
        if !isOwn {
            return try await network.on { network in
                let start = ContinuousClock.now
                network.author(event)
                network.pushAll()
                return start
            }
        }
        let start = ContinuousClock.now
        try await todo.update(id) { ($0.place, $0.owner) = (number, "bob") }
        return start
    }

    @Test("the parts of one change") func parts() async throws {
        for count in [10_000, 100_000] {
            try await device(count, inFile: true) { todo, _ in
                let query = todo.query(Item.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(200)
                let reader = try RowsReader(QuerySource(query))
                let rows = try #require(try reader.next())
                _ = try reader.next()
                var times: [Duration] = []
                for number in 0..<1_000 {
                    try await todo.update(rows[number % 200].id) { $0.place = -number }
                    let start = ContinuousClock.now
                    let next = try reader.next()
                    times.append(ContinuousClock.now - start)
                    #expect(next != nil)
                }
                times.sort()
                print(
                    "\(count) objects, read, decode, index and compare: p50 \(Self.ms(times[500])), p99 \(Self.ms(times[990]))"
                )
            }
        }
    }
}
