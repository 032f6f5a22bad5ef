import Foundation
import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Measures parts of queries that `make bench-sdk` does not measure alone:
/// `REEL_BENCH=1 swift test -c release -Xswiftc -enable-testing --filter QueryBenchmarks`.
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

    /// Runs `body` with a device that has read a stream from a node into a file. `count`: the number of objects in the
    /// stream.
    private func device(_ count: Int, _ body: (Dataset) async throws -> Void) async throws {
        let network = try FakeNetwork()
        let path = FileManager.default.temporaryDirectory.path + "/reel-bench-\(UUID().uuidString)"
        defer { for end in ["", "-wal", "-shm", "-lock"] { try? FileManager.default.removeItem(atPath: path + end) } }
        let events = try (0..<count).map { SyncEvent(try Item.schema.insertion(of: .numbered($0))) }
        try await network.on { network in for event in events { network.author(event) } }
        let client = try network.client(store: .file(path))
        let todo = try await client.open("s", models: [Item.self])
        try await eventually("the stream is up to date") { todo.stream.status.isUpToDate }
        try await body(todo)
        await client.close()
    }

    @Test("first result where no running query uses the order") func first() async throws {
        try await device(100_000) { todo in
            let query = todo.query(Item.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(200)
            for _ in 0..<2 { _ = try time("one read, nothing is decoded") { try query.rows() } }
            let reader = try RowsReader(QuerySource(query))
            _ = try reader.next()
            try time("preparation for changes") { _ = try reader.next() }
            for _ in 0..<3 {
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
        }
    }

    @Test("the parts of one change") func parts() async throws {
        for count in [10_000, 100_000] {
            try await device(count) { todo in
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
