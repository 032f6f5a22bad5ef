import Foundation
import Reel
import ReelClient
import ReelCore

/// Measures the live query of a list of 200 rows among many objects, and the decoding of all objects.
enum DeviceQuery {
    private static let (objects, fewer) = (100_000, 10_000)
    /// The changes of a block, and the number of blocks of each device.
    private static let (changesPerBlock, blocks) = (400, 10)
    private static let rounds = 5
    private static let work = "\(objects) objects, live query of \(BenchItem.window) rows"

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in try await measure(in: folder) }
    }

    @MainActor private static func measure(in folder: String) async throws -> [Measured] {
        let (large, small) = (try await QueryDevice(objects, in: folder), try await QueryDevice(fewer, in: folder))
        let table = try ItemTable(folder + "/floor.sqlite", count: objects)
        let changed = try await changes(large, small, table)
        let first = try await firstResults(large, table)
        let decoded = try decoding(large, table)
        for device in [large, small] { await device.close() }
        return changed + first + decoded
    }

    // MARK: Changes

    @MainActor private static func changes(
        _ large: QueryDevice,
        _ small: QueryDevice,
        _ table: ItemTable
    ) async throws -> [Measured] {
        for device in [large, small] {
            try await device.measure(changesPerBlock)
            device.forgetTimes()
        }
        var floor: [Double] = []
        for isLarge in turns(blocks) {
            try await (isLarge ? large : small).measure(changesPerBlock)
            if isLarge { floor += try changes(of: table, after: floor.count) }
        }
        return ownRows(large.own, small.own, floor) + foreignRows(large.foreign, small.foreign)
    }

    private static func ownRows(_ large: [Double], _ small: [Double], _ floor: [Double]) -> [Measured] {
        let work = work + ": an own change, until its rows are on the main actor"
        let query = Measured(
            work: work + ", p50",
            value: median(large),
            unit: "ms",
            peer: ("bare SQLite: change, query again", median(floor))
        )
        return rows(work, large, small) + [query]
    }

    private static func foreignRows(_ large: [Double], _ small: [Double]) -> [Measured] {
        rows(work + ": a change of another device, until its rows are on the main actor", large, small)
    }

    /// Returns the rows of a kind of change, with the ratio to fewer objects.
    private static func rows(_ work: String, _ large: [Double], _ small: [Double]) -> [Measured] {
        [
            Measured(work: work + ", p99", value: percentile99(large), unit: "ms", goal: .atMost(1)),
            Measured(
                work: work + ", p50",
                value: median(large),
                unit: "ms",
                peer: ("among \(fewer) objects", median(small)),
                goal: .atMost(1.5)
            ),
        ]
    }

    /// Returns the times of changes of a table and of the queries after them, in milliseconds.
    private static func changes(of table: ItemTable, after former: Int) throws -> [Double] {
        var rows = try table.rows()
        return try (0..<changesPerBlock / 2).map { number in
            let id = rows[number * 37 % BenchItem.window].id
            return try seconds { rows = try table.rows(afterChanging: id, place: -former - number - 1) } * 1_000
        }
    }

    // MARK: First results

    @MainActor private static func firstResults(_ large: QueryDevice, _ table: ItemTable) async throws -> [Measured] {
        var (warm, cold, floor): ([Double], [Double], [Double]) = ([], [], [])
        for isReel in turns(rounds) {
            // A query of the round before may still prepare for changes.
            try await Usage.rests(getpid())
            if isReel {
                warm.append(try firstResult(BenchItem.open(in: large.items)))
                try await Usage.rests(getpid())
                cold.append(try await coldResult(large.file, copy: large.file + "-\(cold.count)"))
            } else {
                floor.append(try millis { try table.rows() })
            }
        }
        let peer = (name: "bare SQLite with an index", value: median(floor))
        return [
            Measured(
                work: work + ": first rows, another query uses the order",
                value: median(warm),
                unit: "ms",
                peer: peer,
                goal: .atMost(1.5)
            ),
            Measured(
                work: work + ": first rows, no other query runs",
                value: median(cold),
                unit: "ms",
                peer: peer,
                goal: .atMost(1.5)
            ),
        ]
    }

    /// Returns the milliseconds until a user interface has the first rows.
    @MainActor private static func firstResult(_ query: Query<BenchItem>) throws -> Double {
        try millis { try query.observed() }
    }

    /// Opens a copy of a device's file, and returns the milliseconds until the first rows of a query.
    ///
    /// - Parameters:
    ///   - device: the file.
    ///   - copy: the path of the copy.
    @MainActor private static func coldResult(_ device: String, copy: String) async throws -> Double {
        for end in ["", "-wal"] { try FileManager.default.copyItem(atPath: device + end, toPath: copy + end) }
        let client = try SyncClient(nodes: [], store: .file(copy))
        let items = try await client.open(DeviceSnapshot.stream.description, models: [BenchItem.self])
        let taken = try firstResult(BenchItem.open(in: items))
        await client.close()
        return taken
    }

    /// Returns the time until `body` returns, without that of the release of its result.
    private static func millis<Result>(_ body: () throws -> Result) rethrows -> Double {
        let start = ContinuousClock.now
        let result = try body()
        let taken = ContinuousClock.now - start
        return withExtendedLifetime(result) { taken / .milliseconds(1) }
    }

    // MARK: Decoding

    @MainActor private static func decoding(_ large: QueryDevice, _ table: ItemTable) throws -> [Measured] {
        var (rates, ours, floor): ([Double], [Double], [Double]) = ([], [], [])
        for isReel in turns(rounds) {
            if isReel {
                let objects = try large.items.stream.objects("item")
                var votes = 0
                let taken = try seconds {
                    for object in objects { votes += try BenchItem.schema.value(of: object).votes }
                }
                guard votes > 0 else { throw BenchmarkError("found no votes") }
                rates.append(Double(objects.count * BenchItem.fieldCount) / taken)
                ours.append(try seconds { try check(try large.items.objects(of: BenchItem.self).values) })
            } else {
                floor.append(try seconds { try check(try table.all()) })
            }
        }
        return [
            Measured(
                work: "decode \(objects) objects of \(BenchItem.fieldCount) fields",
                value: median(rates),
                unit: "fields/s",
                goal: .atLeast(1_000_000)
            ),
            Measured(
                work: "read and decode \(objects) objects of \(BenchItem.fieldCount) fields",
                value: median(ours),
                unit: "s",
                peer: ("bare SQLite", median(floor))
            ),
        ]
    }

    private static func check(_ items: [BenchItem]) throws {
        guard items.count == objects else { throw BenchmarkError("lost objects") }
    }
}
