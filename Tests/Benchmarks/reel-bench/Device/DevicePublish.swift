import CDeviceFloor
import Foundation
import ReelClient

/// Measures publishing without a network. The app waits for each event until it is on the disk.
enum DevicePublish {
    private static let (rounds, count) = (5, 500)

    @Sendable static func run() async throws -> [Measured] {
        // The floor needs the sizes of a device's pairs.
        var sizes = try await withFolder { folder in
            _ = try await publish(to: folder + "/device.sqlite")
            return try DeviceLoad.sizes(of: folder + "/device.sqlite")
        }
        sizes.pairs = Int64(count)
        var (ours, followed, floor): ([Double], [Double], [Double]) = ([], [], [])
        for isReel in turns(rounds) {
            try await withFolder { folder in
                if isReel {
                    ours.append(try await publish(to: folder + "/device.sqlite"))
                    followed.append(try await publish(to: folder + "/followed.sqlite", isFollowed: true))
                } else {
                    floor.append(try bareSQLite(folder + "/floor.sqlite", sizes))
                }
            }
        }
        let work = "publish offline, durable, one by one, mean of \(count)"
        return [
            Measured(
                work: work,
                value: median(ours),
                unit: "µs",
                peer: ("bare SQLite commit", median(floor)),
                goal: .atMost(1.2)
            ),
            Measured(
                work: work + ", with recorded changes and an observer",
                value: median(followed),
                unit: "µs",
                peer: ("without them", median(ours))
            ),
        ]
    }

    /// Returns the mean time of a publish in microseconds.
    ///
    /// - Parameters:
    ///   - device: the file.
    ///   - isFollowed: true if the device records changes, and an observer reads them.
    private static func publish(to device: String, isFollowed: Bool = false) async throws -> Double {
        let client = try SyncClient(nodes: [], store: .file(device))
        let stream = try await client.open("bench")
        let token = isFollowed ? try await stream.changes(since: nil).token : nil
        let changes = isFollowed ? await stream.changes() : nil
        let observer = Task {
            guard let changes else { return 0 }
            var seen = 0
            for await batch in changes { seen += batch.objects.count }
            return seen
        }
        let start = ContinuousClock.now
        for number in 0..<count { try await stream.publish(DeviceEvents.insert(number)) }
        let taken = ContinuousClock.now - start
        if let token {
            let recorded = try await stream.changes(since: token)
            guard !recorded.isReset, recorded.objects.count == count else { throw BenchmarkError("lost changes") }
        }
        await client.close()
        guard await observer.value > 0 || !isFollowed else { throw BenchmarkError("the observer has seen nothing") }
        return taken / .microseconds(1) / Double(count)
    }

    private static func bareSQLite(_ path: String, _ sizes: reel_device_pairs) throws -> Double {
        let taken = reel_device_floor_commits(path, sizes)
        guard taken > 0 else { throw BenchmarkError("the bare SQLite program failed") }
        return taken * 1e6 / Double(count)
    }
}

/// Events that an app on a device publishes.
enum DeviceEvents {
    private static let text = JSONValue.string(String(repeating: "x", count: 38))

    /// Returns the insert of an object of four fields, 200 bytes of JSON.
    static func insert(_ number: Int) -> SyncEvent {
        .insert(
            "task",
            id: DeviceSnapshot.id(number),
            ["field0": text, "field1": text, "field2": text, "field3": text]
        )
    }

    /// Returns an update of one field of an object.
    static func update(_ number: Int, _ value: String) -> SyncEvent {
        .update("task", id: DeviceSnapshot.id(number), ["field1": .string(value)])
    }

    /// Publishes the updates of these objects, with many calls at the same time.
    static func publishUpdates(of numbers: Range<Int>, _ value: String, to stream: SyncStream) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let tasks = 64
            for task in 0..<tasks {
                group.addTask {
                    for number in stride(from: numbers.lowerBound + task, to: numbers.upperBound, by: tasks) {
                        try await stream.publish(update(number, value))
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
