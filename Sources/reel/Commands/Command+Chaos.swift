import ReelCheck
import ReelLab
import ReelNet

extension Command {
    /// Everything that may go wrong, and the judge.
    static let chaos = Command(
        "chaos",
        "break a local cluster under load by a seeded schedule, heal it, and let the judge speak",
        about: """
            Starts gateways and snapshot nodes on a log in a temporary folder, puts a proxy in front of each gateway and
            each broker, lets clients publish and listen, and then kills, hangs, stops and restarts processes and breaks
            connections, those of clients with gateways and those of nodes with brokers (delays, black holes, resets,
            half-open ones, lost answers). Each fault is listed with the proof that it took effect. At the end all is
            healed, everything must arrive, and `reel check` judges what every client saw; its verdict is the exit code,
            or 1 if there was no fault or one had no effect, something did not arrive, or no node had the folded state
            of a stream. The evidence stays where the verdict is not valid.
            """,
        settings: [
            seconds, CommonSettings.seed, gateways, snapshots, publishers, readers, rate, CommonSettings.apacheKafka,
            evidence,
        ],
        examples: [
            Example("reel chaos", "on a SQLite log, until Ctrl-C"),
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
        try console.print("seed \(plan.seed), evidence in \(folder)\(own == nil ? "" : ", until all is valid")")
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
        let verdict = try await judge(folder)
        try console.print(page: verdict.text)
        for fault in report.withoutEffect.map(\.fault) {
            try console.print("no effect: \(fault.target), \(fault.kind.rawValue)")
        }
        if report.rows.isEmpty { try console.print("nothing was broken, so nothing is shown: give it more --seconds") }
        let isComplete = report.load.isComplete && report.load.stateless == nil && report.withoutEffect.isEmpty
        own?.keep = verdict.word != .valid || !isComplete
        switch verdict.word {
        case .valid: return isComplete && !report.rows.isEmpty ? .done : .failed
        case .invalid: return .badData
        case .unknown: return .unknown
        }
    }

    private static func judge(_ folder: String) async throws -> Verdict {
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

    private static let gateways = Setting<Int>.number("gateways", "N", 1...8, default: 3, "gateways")
    private static let snapshots = Setting<Int>.number("snapshots", "N", 1...8, default: 2, "snapshot nodes")
    private static let evidence = Setting<String?>.text(
        "evidence",
        "DIR",
        "keep histories, the log's dump and what nodes logged in this fresh folder"
    )
}
