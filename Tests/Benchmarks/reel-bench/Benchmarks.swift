import Foundation

/// Every benchmark by its name. Each brings its peer or floor, and runs it in the same call.
enum Benchmarks {
    static let all: [(name: String, run: @Sendable () async throws -> [Measured])] = [
        ("log-append-16", { try LogAppendBenchmark.run(16) }),
        ("log-append-64", { try LogAppendBenchmark.run(64) }),
        ("log-append-256", { try LogAppendBenchmark.run(256) }),
        ("log-append-1024", { try LogAppendBenchmark.run(1024) }),
        ("log-latency", LogLatencyBenchmark.run),
        ("log-read", LogReadBenchmark.run),
        ("snapshot-writer", SnapshotWriterBenchmark.run),
        ("fan-out", FanOutBenchmark.run),
        ("idle-sockets", IdleBenchmark.run),
    ]

    static func run(_ names: ArraySlice<String>) async {
        let chosen = all.filter { names.isEmpty || names.contains($0.name) }
        let unknown = names.filter { name in !all.contains { $0.name == name } }
        guard unknown.isEmpty else {
            say("found \(unknown.joined(separator: ", ")), expected \(all.map(\.name).joined(separator: ", "))")
            exit(2)
        }
        say("| work | measured | against | ratio | goal | |")
        say("| --- | --- | --- | --- | --- | --- |")
        var missed = false
        for benchmark in chosen {
            do {
                for line in try await benchmark.run() {
                    say(line.row)
                    missed = missed || !line.isReached
                }
            } catch {
                say("| \(benchmark.name) | failed: \(error) | | | | missed |")
                missed = true
            }
        }
        exit(missed ? 1 : 0)
    }

    /// A line at once, also into a pipe.
    private static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// One line of the table.
struct Measured {
    var work: String
    var value: Double
    var unit: String
    /// What it is compared with, in the same unit; nil: the goal is a value.
    var peer: (name: String, value: Double)?
    var goal: Goal?

    enum Goal {
        case atLeast(Double)
        case atMost(Double)
    }

    /// What the goal speaks of: the ratio to the peer, or the value.
    private var judged: Double { peer.map { value / $0.value } ?? value }

    var isReached: Bool {
        switch goal {
        case .atLeast(let least): judged >= least
        case .atMost(let most): judged <= most
        case nil: true
        }
    }

    var row: String {
        let against = peer.map { "\($0.name) \(Self.print($0.value))" } ?? ""
        let ratio = peer == nil ? "" : String(format: "%.2f", judged)
        let goalText: String =
            switch goal {
            case .atLeast(let least): "≥ \(Self.print(least))"
            case .atMost(let most): "≤ \(Self.print(most))"
            case nil: ""
            }
        let verdict = goal == nil ? "" : isReached ? "reached" : "missed"
        return "| \(work) | \(Self.print(value)) \(unit) | \(against) | \(ratio) | \(goalText) | \(verdict) |"
    }

    private static func print(_ value: Double) -> String {
        value >= 1000 ? String(format: "%.0f", value) : String(format: "%.3g", value)
    }
}

/// The middle of some measurements.
func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}

/// How long `body` takes, in seconds.
func seconds(_ body: () throws -> Void) rethrows -> Double {
    let taken = try ContinuousClock().measure(body)
    return Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18
}

/// A folder of its own for `body`, removed afterwards.
func withFolder<R>(_ body: (String) throws -> R) throws -> R {
    let path = FileManager.default.temporaryDirectory.path + "/reel-bench-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try body(path)
}

/// What a benchmark could not do.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
