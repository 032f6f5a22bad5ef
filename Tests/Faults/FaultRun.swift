import Foundation
import ReelCheck
import ReelCore
import ReelLab

/// A row of the table: the effects of one fault on clients, and the verdict of the checker.
struct FaultRun {
    let fault: Fault
    private var proof = ""
    private var report: LoadReport?
    /// Acknowledged events per second when the fault was injected.
    private var rate = 0.0
    private var verdict: Verdict?
    /// The unexpected results; empty if the fault took effect and all guarantees held.
    private(set) var problems: [String] = []

    /// Starts clients that publish and listen, injects the fault, and checks the histories of the clients.
    static func run(_ fault: Fault, on ground: Ground, seed: UInt64) async -> FaultRun {
        var run = FaultRun(fault: fault)
        do {
            let scene = try await Scene(fault, on: ground, seed: seed)
            defer { scene.nodes.end() }
            try await fault.prepare(scene)
            try await run.load(scene)
            try await run.judge(scene)
        } catch {
            run.problems.append("\(error)")
        }
        return run
    }

    private mutating func load(_ scene: Scene) async throws {
        let load = scene.load
        let report = Task { try await load.run() }
        do {
            rate = try await scene.fullLoad()
            proof = try await fault.strike(scene)
            scene.driver.fault(fault.name, on: "cluster", proof: proof)
            scene.driver.healed()
            try await scene.acks(1_000)
        } catch {
            problems.append("\(error)")
        }
        load.stop()
        let result = try await report.value
        self.report = result
        scene.driver.ended(unacked: 0)
        try scene.histories.flush()
        problems += result.problems
    }

    private mutating func judge(_ scene: Scene) async throws {
        for stream in scene.streams {
            let snapshot = try await scene.get(scene.nodes.gateways[1], "/v1/streams/\(stream)/snapshot")
            try Data(snapshot).write(to: URL(filePath: "\(scene.folder)/\(stream).snapshot.jsonl"))
        }
        try scene.dump(to: "log-\(scene.epoch).jsonl")
        let verdict = try await RunCheck(folder: scene.folder, logs: []).verdict()
        self.verdict = verdict
        try verdict.text.write(toFile: "\(scene.folder)/verdict", atomically: true, encoding: .utf8)
        if verdict.word != .valid { problems.append(verdict.text) }
    }

    // MARK: The table

    static let head = row([
        "fault", "took effect", "acked", "1/s", "lost", "twice", "order", "else", "pause", "verdict",
    ])

    /// The row of this fault, followed by lines with the problems.
    var lines: String {
        let acked = report?.statistics.acked ?? 0
        func broken(_ invariants: Set<Invariant>) -> String {
            guard let verdict else { return "?" }
            return "\(verdict.counts.filter { invariants.contains($0.invariant) }.reduce(0) { $0 + $1.violations })"
        }
        let lost =
            verdict.map { $0.printedAsLost > 0 ? "; \($0.printedAsLost) acked events printed as lost" : "" } ?? ""
        let named: Set<Invariant> = [.ackedLoss, .doubled, .oneOrder, .siteOrder]
        let cells = [
            fault.name, proof + lost, "\(acked)", "\(Int(rate))",
            broken([.ackedLoss]), broken([.doubled]), broken([.oneOrder, .siteOrder]),
            broken(Set(Invariant.allCases).subtracting(named)),
            String(format: "%.2f s", Double(report?.statistics.pause.max ?? 0) / 1e9),
            problems.isEmpty
                ? "valid" : verdict?.word == .valid ? "NOT SO" : (verdict?.word.rawValue ?? "NONE").uppercased(),
        ]
        return ([Self.row(cells)] + problems.map { "    " + $0.replacing("\n", with: "\n    ") }).joined(
            separator: "\n"
        )
    }

    private static func row(_ cells: [String]) -> String {
        let widths = [31, 52, 6, 4, 4, 5, 5, 4, 8, 0]
        return zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
            .joined(separator: "  ")
    }
}
