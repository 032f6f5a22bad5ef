import Foundation

/// All benchmarks by name. Each benchmark also runs its peer or floor, in the same call.
enum Benchmarks {
    static let all: [(name: String, run: @Sendable () async throws -> [Measured])] = [
        ("fold", { try FoldBenchmark.run() }),
        ("session", { try SessionBenchmark.run() }),
        ("log-append-16", { try LogAppendBenchmark.run(16) }),
        ("log-append-64", { try LogAppendBenchmark.run(64) }),
        ("log-append-256", { try LogAppendBenchmark.run(256) }),
        ("log-append-1024", { try LogAppendBenchmark.run(1024) }),
        ("log-latency", { try LogLatencyBenchmark.run() }),
        ("log-read", { try LogReadBenchmark.run() }),
        ("snapshot-writer", { try SnapshotWriterBenchmark.run() }),
        ("snapshot-large-stream", { try LargeStreamBenchmark.run() }),
        ("cold-start", ColdStartBenchmark.run),
        ("idle-serve", IdleServeBenchmark.run),
        ("fan-out", FanOutBenchmark.run),
        ("judge", JudgeBenchmark.run),
        ("load-client", LoadClientBenchmark.run),
        ("idle-sockets", IdleBenchmark.run),
    ]

    /// The benchmarks that need a real Kafka.
    static let kafka: [(name: String, run: @Sendable () async throws -> [Measured])] = [
        ("kafka-latency", KafkaLatencyBenchmark.run),
        ("kafka-pipeline", KafkaPipelineBenchmark.run),
        ("kafka-tail", KafkaTailBenchmark.run),
        ("kafka-read", KafkaReadBenchmark.run),
        ("kafka-leader-killed", KafkaLeaderKilledBenchmark.run),
        ("kafka-gateway-killed", KafkaGatewayKilledBenchmark.run),
        ("kafka-idle", KafkaIdleBenchmark.run),
    ]

    /// The benchmarks of a gateway with many clients, in comparison with NATS and Redis.
    static let gateway: [(name: String, run: @Sendable () async throws -> [Measured])] = [
        ("gateway-fan-out", GatewayFanOutBenchmark.core),
        ("gateway-jet-stream", GatewayFanOutBenchmark.jetStream),
        ("gateway-pace", GatewayPaceBenchmark.fanOut),
        ("gateway-streams", GatewayPaceBenchmark.streams),
        ("gateway-loops", GatewayPaceBenchmark.loops),
        ("gateway-harm", GatewayHarmBenchmark.run),
        ("gateway-replay", GatewayReplayBenchmark.run),
        ("gateway-idle", GatewayConnectionsBenchmark.idle),
        ("gateway-connect", GatewayConnectionsBenchmark.connect),
        ("gateway-cold-starts", GatewayColdStartsBenchmark.run),
        ("gateway-comebacks", GatewayComebacksBenchmark.run),
    ]

    /// The benchmarks of the device SDK.
    static let sdk: [(name: String, run: @Sendable () async throws -> [Measured])] = [
        ("sdk-load", DeviceLoad.run),
        ("sdk-open", DeviceLaunch.runOpen),
        ("sdk-memory", DeviceLaunch.runMemory),
        ("sdk-launch", DeviceLaunch.runNews),
        ("sdk-read", DeviceLaunch.runReads),
        ("sdk-publish", DevicePublish.run),
        ("sdk-drain", DeviceDrain.run),
        ("sdk-typing", DeviceTyping.run),
        ("sdk-held", DeviceHeld.run),
        ("sdk-streams", DeviceStreams.run),
        ("sdk-behind", DeviceBehind.run),
        ("sdk-year", DeviceYear.run),
        ("sdk-query", DeviceQuery.run),
        ("sdk-draft", DeviceDraft.run),
    ]

    /// Runs the named benchmarks and groups, and prints their table. Without names, it runs the benchmarks that need
    /// only `make setup`. Returns 0 if every measured goal was reached.
    static func run(_ names: ArraySlice<String>) async -> Int32 {
        let groups = ["kafka": kafka, "gateway": gateway, "sdk": sdk]
        let named = all + kafka + gateway + sdk
        let unknown = names.filter { name in groups[name] == nil && !named.contains { $0.name == name } }
        guard unknown.isEmpty else {
            let known = groups.keys.sorted() + named.map(\.name)
            say("found \(unknown.joined(separator: ", ")), expected \(known.joined(separator: ", "))")
            return 2
        }
        let chosen =
            names.isEmpty ? all : named.filter { names.contains($0.name) } + names.flatMap { groups[$0] ?? [] }
        say(Machine.line)
        say("")
        say("| work | measured | against | ratio | goal | |")
        say("| --- | --- | --- | --- | --- | --- |")
        var missed: [String] = []
        var notMeasured: [String] = []
        for benchmark in chosen {
            do {
                for line in try await benchmark.run() {
                    say(line.row)
                    if !line.isReached { missed.append(line.work) }
                }
            } catch let error as NotMeasured {
                notMeasured.append("\(benchmark.name): \(error.reason)")
            } catch {
                say("| \(benchmark.name) | failed: \(error) | | | | missed |")
                missed.append(benchmark.name)
            }
        }
        say("")
        for work in missed { say("MISSED: \(work)") }
        for work in notMeasured { say("NOT MEASURED: \(work)") }
        if missed.isEmpty { say("Every goal that was measured was reached.") }
        return missed.isEmpty ? 0 : 1
    }

    /// Writes a line without a buffer, so that it also appears at once in a pipe.
    private static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// A row of the table.
struct Measured {
    var work: String
    var value: Double
    var unit: String
    /// The figure of the peer or floor, in the same unit; nil if the goal is for the value alone.
    var peer: (name: String, value: Double)?
    var goal: Goal?

    enum Goal {
        case atLeast(Double)
        case atMost(Double)
        /// The value is at most this much above that of the peer, in the same unit.
        case atMostAbove(Double)
        /// The ratio to the peer differs from 1 by at most this part.
        case within(Double)
    }

    /// The number that the goal limits: the ratio to the peer, or the value if there is no peer.
    private var judged: Double { peer.map { value / $0.value } ?? value }

    var isReached: Bool {
        switch goal {
        case .atLeast(let least): judged >= least
        case .atMost(let most): judged <= most
        case .atMostAbove(let more): value - (peer?.value ?? 0) <= more
        case .within(let part): abs(judged - 1) <= part
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
            case .atMostAbove(let more): "≤ + \(Self.print(more)) \(unit)"
            case .within(let part): "within \(Self.print(part * 100)) %"
            case nil: ""
            }
        let verdict = goal == nil ? "" : isReached ? "reached" : "missed"
        return "| \(work) | \(Self.print(value)) \(unit) | \(against) | \(ratio) | \(goalText) | \(verdict) |"
    }

    private static func print(_ value: Double) -> String {
        abs(value) >= 1000 ? String(format: "%.0f", value) : String(format: "%.3g", value)
    }
}

/// Returns the median of some measurements.
func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}

/// Returns the order of measurements; true is Reel, false is the peer. The first one of a round is second in the next
/// round, so that a drift of the machine affects both equally.
func turns(_ rounds: Int) -> [Bool] {
    (0..<rounds).flatMap { $0.isMultiple(of: 2) ? [true, false] : [false, true] }
}

/// Returns the duration of `body` in seconds.
func seconds(_ body: () throws -> Void) rethrows -> Double {
    let taken = try ContinuousClock().measure(body)
    return Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18
}

/// The error of a benchmark that failed.
struct BenchmarkError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// The error of a benchmark for which this machine lacks a program or file. It is not a failure of Reel.
struct NotMeasured: Error {
    var reason: String

    init(_ reason: String) { self.reason = reason }
}
