import Foundation
import ReelClient
import ReelLab

/// A device that lives for a year: it opens many streams one after the other, writes, leaves them, sleeps, and returns
/// to some of them. Measures what remains of the streams that it has left.
enum DeviceYear {
    private static let (streams, perDay, objects) = (500, 25, 20)
    /// The number of streams after which the first sample is taken: the caches and pools of the process are filled.
    private static let warm = 250

    private struct Left {
        var bytes: Int
        var threads: Int
        var descriptors: Int
        var fileBytes: Int

        init(_ path: String) throws {
            bytes = try Usage.residentBytes(of: getpid())
            threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
            descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            fileBytes = ["", "-wal"].reduce(0) { sum, end in
                let attributes = try? FileManager.default.attributesOfItem(atPath: path + end)
                return sum + (attributes?[.size] as? Int ?? 0)
            }
        }
    }

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            try await withReel(["serve", "--data", folder + "/node"], in: folder) { node in
                let path = folder + "/device.sqlite"
                var early: Left?
                var late: Left?
                for first in stride(from: 0, to: streams, by: perDay) {
                    let client = try SyncClient(nodes: [node.url], store: .file(path))
                    for number in first..<first + perDay { try await visit(number, client) }
                    _ = try await client.syncOnce(deadline: .seconds(20))
                    await client.close()
                    if first + perDay == warm { early = try Left(path) }
                    if first + perDay == streams { late = try Left(path) }
                }
                guard let early, let late else { throw BenchmarkError("found no sample") }
                let work = "a year: \(streams) streams opened, written and left; the last \(streams - warm) leave"
                return [
                    measured("\(work) memory", Double(late.bytes - early.bytes) / 1e6, "MB", 1),
                    measured("\(work) bytes in the file", Double(late.fileBytes - early.fileBytes) / 1e3, "kB", 128),
                    measured("\(work) threads", Double(late.threads - early.threads), "", 0),
                    measured("\(work) descriptors", Double(late.descriptors - early.descriptors), "", 0),
                ]
            }
        }
    }

    private static func measured(_ work: String, _ value: Double, _ unit: String, _ goal: Double) -> Measured {
        Measured(work: work, value: value, unit: unit, goal: .atMost(goal))
    }

    /// Opens a stream, writes to it, and leaves it. Of every five streams, one is forgotten, and one of an earlier day
    /// is opened again.
    private static func visit(_ number: Int, _ client: SyncClient) async throws {
        try await write(to: "year-\(number)", client)
        if number % 5 == 1, number > perDay { try await write(to: "year-\(number - perDay)", client) }
        if number % 5 == 0 { try await client.forget("year-\(number)") }
    }

    private static func write(to name: String, _ client: SyncClient) async throws {
        let stream = try await client.open(name)
        var last: PublishHandle?
        for id in 0..<objects {
            last = try await stream.publish(.insert("note", ["text": "the text of note \(id)"]))
        }
        _ = try await last?.outcome()
        try await client.evict(name)
    }
}
