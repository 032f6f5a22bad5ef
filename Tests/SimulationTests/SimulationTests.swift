import Foundation
import TestSupport
import Testing

/// Runs the real client, gateway and fold in virtual time, in a world that loses, delays and
/// repeats data and kills processes.
///
/// A seed determines everything that happens: `SEED=n make simulate` prints the run of a seed.
@Suite struct SimulationTests {
    private static let environment = ProcessInfo.processInfo.environment

    /// The seeds to run, divided among the machine's cores: one named seed, or a number of seeds from the first one on.
    static let parts: [[UInt64]] = {
        if let seed = environment["SEED"].flatMap(UInt64.init) { return [[seed]] }
        let count = UInt64(environment["SEEDS"].flatMap(Int.init) ?? 30 * effort)
        let first = TestSeed.value
        print("simulated: \(count) seeds from REEL_SEED=\(first) on")
        let parts = UInt64(ProcessInfo.processInfo.activeProcessorCount)
        return (0..<parts).map { part in (0..<count).filter { $0 % parts == part }.map { first &+ $0 } }
    }()

    @Test("all clients reach the same state", arguments: parts.indices) func clientsConverge(_ part: Int) throws {
        let seeds = Self.parts[part]
        let folder = Self.folder
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for seed in seeds {
            let tracer = Self.environment["SEED"] == nil ? nil : { (line: String) in print(line) }
            let world = World(seed: seed, folder: "\(folder)/\(seed)", tracer: tracer)
            do throws(World.Failure) {
                try world.run()
            } catch {
                Issue.record("\(error.message); SEED=\(seed) make simulate shows how")
            }
            try? FileManager.default.removeItem(atPath: world.folder)
        }
    }

    /// The order of a set differs between processes unless hashing is deterministic.
    @Test("a seed is the same each time", .enabled(if: environment["SWIFT_DETERMINISTIC_HASHING"] != nil))
    func aSeedIsThe() throws {
        let folder = Self.folder
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for seed in Self.parts[0].prefix(5) {
            let runs = [0, 1].map { _ in
                var lines: [String] = []
                let world = World(seed: seed, folder: "\(folder)/\(seed)") { lines.append($0) }
                do throws(World.Failure) { try world.run() } catch { lines.append(error.message) }
                try? FileManager.default.removeItem(atPath: world.folder)
                return lines
            }
            let place = zip(runs[0], runs[1]).enumerated().first { $1.0 != $1.1 }
            #expect(runs[0] == runs[1], "seed \(seed), line \(String(describing: place))")
        }
    }

    /// A folder on a disk in memory, if there is one, because the devices commit often.
    private static var folder: String {
        let disk = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        return "\(disk)/reel-simulation-\(UUID().uuidString)"
    }
}
