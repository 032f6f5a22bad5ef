import CDeviceFloor
import Foundation
import ReelBase
import ReelClient
import ReelCore
import ScriptedNodes

/// Measures a device that has loaded a large stream before: opening, memory, a launch with news, and reading.
enum DeviceLaunch {
    private static let reads = 5_000
    private static let work = "\(DeviceSnapshot.objects) objects of 200 B"

    @Sendable static func runOpen() async throws -> [Measured] {
        let files = try await LoadedDevice.shared.load()
        let value = try DeviceWork.open.figures(files.device).figure("open_ms")
        let floor = try (0..<9).map { _ in
            let taken = reel_device_floor_open(files.device, "cspteqo")
            guard taken > 0 else { throw BenchmarkError("the bare SQLite program failed") }
            return taken * 1_000
        }
        let name = work + ", opened again, median of 9"
        return [
            Measured(work: name, value: value, unit: "ms", goal: .atMost(100)),
            Measured(work: name, value: value, unit: "ms", peer: ("bare SQLite", median(floor))),
        ]
    }

    @Sendable static func runMemory() async throws -> [Measured] {
        let files = try await LoadedDevice.shared.load()
        return [
            Measured(
                work: work + ": memory of the open stream, after reading \(reads) of them",
                value: try DeviceWork.memory.figures(files.device).figure("memory_mb"),
                unit: "MB",
                goal: .atMost(40)
            )
        ]
    }

    @Sendable static func runNews() async throws -> [Measured] {
        let files = try await LoadedDevice.shared.load()
        let figures = try DeviceWork.launch.figures(files.snapshot, files.device)
        return [
            Measured(
                work: work + ": bytes written by a launch with one new event",
                value: try figures.figure("written_kb"),
                unit: "KB",
                goal: .atMost(64)
            )
        ]
    }

    @Sendable static func runReads() async throws -> [Measured] {
        let files = try await LoadedDevice.shared.load()
        var micros = [Double](repeating: 0, count: reads)
        guard reel_device_floor_reads(files.device, Int32(reads), &micros) == 0 else {
            throw BenchmarkError("the bare SQLite program failed")
        }
        let value = try withFolder { folder in
            let copy = folder + "/device.sqlite"
            try FileManager.default.copyItem(atPath: files.device, toPath: copy)
            return try DeviceWork.read.figures(files.snapshot, copy).figure("p99_ms")
        }
        let name = "one object of \(DeviceSnapshot.objects) by id, while another stream loads, p99"
        let floor = percentile99(micros) / 1_000
        return [
            Measured(work: name, value: value, unit: "ms", goal: .atMost(2)),
            Measured(work: name, value: value, unit: "ms", peer: ("bare SQLite at rest", floor)),
        ]
    }

    // MARK: The device's process

    /// Opens the file several times, and reads an object each time.
    static func open(_ device: String) async throws -> [String: Double] {
        var millis: [Double] = []
        for round in 0..<9 {
            let start = ContinuousClock.now
            let client = try SyncClient(nodes: [], store: .file(device))
            let stream = try await client.open(DeviceSnapshot.stream.description)
            guard try stream.object(DeviceSnapshot.model, id: DeviceSnapshot.id(round * 1_000)) != nil else {
                throw BenchmarkError("the device lacks an object")
            }
            millis.append((ContinuousClock.now - start) / .milliseconds(1))
            await client.close()
        }
        return ["open_ms": median(millis)]
    }

    /// Opens the stream and reads some of its objects. The memory is that of the open, used stream.
    static func memory(of device: String) async throws -> [String: Double] {
        let before = try Usage.residentBytes(of: getpid())
        let client = try SyncClient(nodes: [], store: .file(device))
        let stream = try await client.open(DeviceSnapshot.stream.description)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<reads { _ = try stream.object(DeviceSnapshot.model, id: randomID(&generator)) }
        let after = try Usage.residentBytes(of: getpid())
        await client.close()
        return ["memory_mb": Double(after - before) / 1e6]
    }

    /// Opens the stream beside a node that has one new event, and closes it once the event was folded.
    static func withNews(_ snapshot: String, _ device: String) async throws -> [String: Double] {
        let last = Seq(DeviceSnapshot.objects)
        let node = try ScriptedNode(snapshot: snapshot, head: last)
        let before = try Usage.ownWrittenBytes()
        let client = try SyncClient(nodes: ["scripted"], store: .file(device), transport: node)
        let stream = try await client.open(DeviceSnapshot.stream.description)
        guard stream.status.seq == last - 1 else { throw BenchmarkError("the device has the event already") }
        try await stream.waitUntil(seq: last)
        guard await client.statistics.deltas == 1 else { throw BenchmarkError("the device has read no delta") }
        await client.close()
        return ["written_kb": Double(try Usage.ownWrittenBytes() - before) / 1024]
    }

    /// Reads random objects one after another while another stream is loaded into the same file.
    static func readBesideLoad(of snapshot: String, into device: String) async throws -> [String: Double] {
        let node = try ScriptedNode(snapshot: snapshot, head: Seq(DeviceSnapshot.objects))
        let client = try SyncClient(nodes: ["scripted"], store: .file(device), transport: node)
        let stream = try await client.open(DeviceSnapshot.stream.description)
        let other = try await client.open("other")
        while try other.object(DeviceSnapshot.model, id: DeviceSnapshot.id(0)) == nil {
            try await Task.sleep(for: .milliseconds(2))
        }
        var generator = SeededGenerator(seed: 2)
        var millis: [Double] = []
        while millis.count < reads, try other.read({ !$0.isComplete }) {
            let id = randomID(&generator)
            let taken = try seconds {
                guard try stream.object(DeviceSnapshot.model, id: id) != nil else {
                    throw BenchmarkError("the device lacks an object")
                }
            }
            millis.append(taken * 1_000)
            try await Task.sleep(for: .milliseconds(1))
        }
        await client.close()
        return ["p99_ms": percentile99(millis)]
    }

    private static func randomID(_ generator: inout SeededGenerator) -> String {
        DeviceSnapshot.id(Int(generator.next() % UInt64(DeviceSnapshot.objects)))
    }
}

/// Returns the 99th percentile of some measurements.
func percentile99(_ values: [Double]) -> Double {
    values.isEmpty ? .infinity : values.sorted()[min(values.count - 1, values.count * 99 / 100)]
}
