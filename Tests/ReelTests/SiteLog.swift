import ReelCore
import ReelLog
import TestSupport

/// A log of one partition in which each site of a stream has a number.
struct SiteLog {
    let path: String

    init(_ path: String) { self.path = path }

    /// The gateway's time in all events.
    static let atMs: Int64 = 1_795_000_000_000

    static func site(_ number: Int) -> Site { Site(high: 0x4000, low: 1 << 63 | UInt64(number)) }

    /// Returns an event without effect.
    static func event(site number: Int, op: Op, base: Seq) -> String {
        EventText.logged("noop", site(number), op, base: base, at: atMs, by: "u\(number)").text
    }

    /// Appends records, at most a thousand in one append.
    func append(_ values: [String], key: String = "todo") async throws {
        let log = try SQLiteLog(path: path, partitions: 1)
        defer { log.close() }
        var rest = values[...]
        while !rest.isEmpty {
            let records = rest.prefix(1_000).map { LogAppend(key: Array(key.utf8), value: Array($0.utf8)) }
            rest = rest.dropFirst(1_000)
            _ = try await withCheckedThrowingContinuation { continuation in
                log.append(records, to: 0) { continuation.resume(with: $0) }
            }
        }
    }

    /// The last seq.
    var last: Seq {
        get throws {
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            return try log.bounds(0).last
        }
    }

    /// Returns the value of a record.
    func value(at seq: Seq) throws -> String? {
        let log = try SQLiteLog(path: path, partitions: 1)
        defer { log.close() }
        let batch = try log.read(0, from: seq, to: seq, bytes: 1 << 20)
        return batch.entry(at: seq).map { entry in
            batch.withRecord(entry) { _, value in String(decoding: value, as: UTF8.self) }
        }
    }
}
