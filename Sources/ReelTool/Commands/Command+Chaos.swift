import ReelCheck
import ReelLab
import ReelNet

extension Command {
    /// `reel chaos`: a local cluster under load and faults, with a check of the result.
    static let chaos = Command(
        "chaos",
        "break a local cluster under load by a seeded schedule, repair it, and check the result",
        about: """
            Starts gateways and snapshot nodes on a log in a temporary folder, with a proxy in front of each gateway and
            each broker. While clients publish and read, it kills, hangs, stops and restarts processes, and breaks
            connections between clients and gateways, and between nodes and brokers: delays, black holes, resets,
            half-open connections, lost answers. Each fault is listed with the proof that it had an effect.

            At the end all faults are repaired, every event must arrive, and `reel check` checks what every client saw.
            Its verdict is the exit code. The exit code is 1 if there was no fault, or a fault had no effect. It is also
            1 if something did not arrive, or no node had the folded state of a stream. The evidence is kept unless the
            verdict is valid.
            """,
        settings: [
            seconds, CommonSettings.seed, gateways, snapshots, publishers, readers, rate, CommonSettings.apacheKafka,
            evidence,
        ],
        examples: [
            Example("reel chaos", "on an SQLite log, until Ctrl-C"),
            Example("reel chaos --seconds 3600 --seed 7 --apache-kafka kafka_2.13-4.2.0", "an hour on three brokers"),
        ]
    ) { options, console in
        var plan = ChaosPlan()
        plan.seconds = options[seconds]
        plan.seed = UInt64(options[CommonSettings.seed] ?? Int.random(in: 0...Int(Int32.max)))
        plan.gateways = options[gateways]
        plan.snapshots = options[snapshots]
        if let count = options[publishers] { plan.publishers = count }
        if let count = options[readers] { plan.readers = count }
        if let rate = options[rate] { plan.rate = Double(rate) }
        plan.kafka = try options[CommonSettings.apacheKafka].map { try KafkaHome($0) }
        try plan.check()
        let own = try options[evidence] == nil ? TemporaryFolder(prefix: "reel-chaos-") : nil
        guard let folder = own?.path ?? options[evidence] else { return .failed }
        try console.print("seed \(plan.seed), evidence in \(folder)")
        if own != nil { try console.print("the evidence is deleted if everything is valid") }
        let chaos = try ChaosRun(plan, reel: try ownPath(), folder: folder) { line in
            try? console.print(line)
            try? console.flush()
        }
        defer { chaos.end() }
        own?.keep = true
        let (loop, stop) = (chaos.load.loop, chaos.stop)
        try loop.sync { loop.onInterruption { stop() } }
        let report = try await chaos.run()
        try console.print(page: "\n\(report.text)\n\n\(report.load.text)\n")
        let verdict = try await verdict(of: folder)
        try console.print(page: verdict.text)
        for fault in report.withoutEffect.map(\.fault) {
            try console.print("no effect: \(fault.target), \(fault.kind.rawValue)")
        }
        if report.rows.isEmpty { try console.print("there was no fault, so nothing is proven: use more --seconds") }
        let isComplete = report.load.isComplete && report.load.stateless == nil && report.withoutEffect.isEmpty
        own?.keep = verdict.word != .valid || !isComplete
        switch verdict.word {
        case .valid: return isComplete && !report.rows.isEmpty ? .done : .failed
        case .invalid: return .badData
        case .unknown: return .unknown
        }
    }

    private static func verdict(of folder: String) async throws -> Verdict {
        do throws(Fault) {
            return await (try RunCheck(folder: folder, logs: [])).verdict()
        } catch {
            throw CommandError(.failed, error.reason)
        }
    }

    private static let seconds = number(.seconds)
    private static let publishers = number(.publishers)
    private static let readers = number(.readers)
    private static let rate = number(.rate)

    private static func number(_ number: LoadProfile.Number) -> Setting<Int?> {
        Setting<Int?>.number(number.rawValue, "N", number.bounds, number.help)
    }

    private static let gateways = Setting<Int>.number("gateways", "N", 1...8, default: 3, "number of gateways")
    private static let snapshots = Setting<Int>.number("snapshots", "N", 1...8, default: 2, "number of snapshot nodes")
    private static let evidence = Setting<String?>.text(
        "evidence",
        "DIR",
        "keep histories, the log's dump and the nodes' log lines in this new folder"
    )
}
