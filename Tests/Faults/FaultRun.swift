import Foundation
import ReelCore
import ReelLab

/// A row of the table: what one fault did to clients, and what the judge says.
struct FaultRun {
    let fault: Fault
    var proof = ""
    var report: LoadReport?
    var secondsOfLoad = 0.0
    var verdict = "none"
    var problem: String?

    var held: Bool { problem == nil }

    static func run(_ fault: Fault, on ground: Ground, seed: UInt64) async -> FaultRun {
        var run = FaultRun(fault: fault)
        do {
            let trial = try await Trial(fault, on: ground, seed: seed)
            defer { trial.nodes.end() }
            try await fault.prepare(trial)
            let load = trial.load
            let report = Task { try await load.run() }
            let start = Clock.nowMs()
            try await trial.acks(1_000)
            do {
                run.proof = try await fault.strike(trial)
            } catch {
                load.stop()
                throw error
            }
            trial.driver.fault(fault.name, on: "cluster", proof: run.proof)
            trial.driver.healed()
            try await trial.acks(1_000)
            run.secondsOfLoad = Double(Clock.nowMs() - start) / 1_000
            load.stop()
            let result = try await report.value
            run.report = result
            try await run.judge(trial)
            if !result.isComplete { run.problem = result.problems.joined(separator: "; ") }
        } catch {
            run.problem = "\(error)"
        }
        return run
    }

    private mutating func judge(_ trial: Trial) async throws {
        let dump = ["dump", "--log", trial.nodes.log]
        let (code, said) = try trial.ground.run(trial.ground.reel, dump, output: trial.folder + "/log.jsonl")
        guard code == 0 else { throw Trial.NoEffect("the log cannot be dumped: \(said)") }
        let judged = try trial.ground.run(trial.ground.reel, ["check", trial.folder])
        verdict = judged.code == 0 ? "valid" : "INVALID"
        if judged.code != 0 { problem = judged.said }
    }

    // MARK: The table

    static let head = row(["fault", "took effect", "acked", "1/s", "longest pause", "resent", "verdict"])

    var line: String {
        guard let report else { return Self.row([fault.name, problem ?? proof, "", "", "", "", "NOT TRIED"]) }
        let statistics = report.statistics
        return Self.row([
            fault.name, proof, "\(statistics.acked)", "\(Int(Double(statistics.acked) / secondsOfLoad))",
            String(format: "%.2f s", Double(statistics.longestPauseNs) / 1e9), "\(statistics.resent)",
            held ? verdict : "WRONG: " + (problem ?? ""),
        ])
    }

    private static func row(_ cells: [String]) -> String {
        let widths = [30, 48, 7, 5, 13, 7, 0]
        return zip(cells, widths).map { $0.padding(toLength: max($1, $0.count), withPad: " ", startingAt: 0) }
            .joined(separator: "  ")
    }
}
