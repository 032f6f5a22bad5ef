import CDeviceFloor
import Foundation
import ReelClient
import ReelCore
import ScriptedNodes

/// Measures the first load of a large stream.
enum DeviceLoad {
    /// The rows that a device writes in one commit of a load.
    private static let rowsPerCommit: Int32 = 1_000

    @Sendable static func run() async throws -> [Measured] {
        let files = try await LoadedDevice.shared.load()
        let floor = median(try (0..<3).map { _ in try bareSQLite(files.device) })
        let work = "\(DeviceSnapshot.objects) objects of 200 B, first load"
        return [
            Measured(
                work: work + ": CPU",
                value: try files.figures.figure("cpu_s"),
                unit: "s",
                peer: ("bare SQLite", floor),
                goal: .atMost(2.5)
            ),
            Measured(
                work: work + ": highest memory",
                value: try files.figures.figure("peak_mb"),
                unit: "MB",
                goal: .atMost(80)
            ),
            Measured(
                work: work + ": time until the first object is readable",
                value: try files.figures.figure("first_s"),
                unit: "s",
                goal: .atMost(1)
            ),
            Measured(work: work + ": time", value: try files.figures.figure("load_s"), unit: "s"),
        ]
    }

    private static func bareSQLite(_ device: String) throws -> Double {
        try withFolder { folder in
            let taken = reel_device_floor_load(folder + "/floor.sqlite", try sizes(of: device), rowsPerCommit)
            guard taken > 0 else { throw BenchmarkError("the bare SQLite program failed") }
            return taken
        }
    }

    /// Returns the number and the sizes of the pairs in a device's file.
    static func sizes(of device: String) throws -> reel_device_pairs {
        var sizes = reel_device_pairs()
        guard reel_device_floor_sizes(device, &sizes) == 0 else { throw BenchmarkError("cannot read \(device)") }
        return sizes
    }

    // MARK: The device's process

    /// Loads the snapshot into a new file.
    static func load(snapshot: String, into device: String) async throws -> [String: Double] {
        let last = Seq(DeviceSnapshot.objects) - 1
        let node = try ScriptedNode(snapshot: snapshot, head: last)
        let (cpu, start) = (Usage.ownCPUSeconds(), ContinuousClock.now)
        let client = try SyncClient(nodes: ["scripted"], store: .file(device), transport: node)
        let stream = try await client.open(DeviceSnapshot.stream.description)
        while try stream.object(DeviceSnapshot.model, id: DeviceSnapshot.id(0)) == nil {
            try await Task.sleep(for: .milliseconds(2))
        }
        let first = (ContinuousClock.now - start) / .seconds(1)
        guard try stream.read({ !$0.isComplete }) else { throw BenchmarkError("a part of a stream is marked complete") }
        try await stream.waitUntil(seq: last)
        let figures = [
            "cpu_s": Usage.ownCPUSeconds() - cpu,
            "load_s": (ContinuousClock.now - start) / .seconds(1),
            "first_s": first,
            "peak_mb": Double(try Usage.peakBytes(of: getpid())) / 1e6,
        ]
        guard try stream.object(DeviceSnapshot.model, id: DeviceSnapshot.id(DeviceSnapshot.objects - 1)) != nil,
            try stream.read(\.isComplete)
        else { throw BenchmarkError("the device lacks objects") }
        await client.close()
        return figures
    }
}
