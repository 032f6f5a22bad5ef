import Glibc
import ReelClient
import ReelCore
import ReelNet
import Synchronization

/// A cluster of local processes under load, to which things are done that follow from a seed. What everybody saw is
/// kept for the judge.
///
/// Use it from one task at a time.
public final class ChaosRun {
    let plan: ChaosPlan
    let reel: String
    let folder: String
    let brokers: LocalKafka?
    let cluster: LocalCluster
    /// One in front of each gateway.
    let proxies: [FaultProxy]
    /// The clients.
    public let load: LoadRun
    private let histories: HistoryFolder
    private let driver: History
    private let say: (String) -> Void
    private var startMs: Int64 = 0
    private var rows: [ChaosReport.Row] = []
    private let stopped = Stop()

    private final class Stop: Sendable {
        let isAsked = Atomic<Bool>(false)
    }

    private static let partitions = 6
    /// So long a fault may take to show.
    private static let patienceMs: Int64 = 20_000
    /// Without an end, it ends after a week.
    private static let secondsMax = 7 * 86_400

    /// Starts the cluster, with all that it keeps in `folder`, a fresh one. `say` gets the lines of the timeline.
    public init(_ plan: ChaosPlan, reel: String, folder: String, say: @escaping (String) -> Void) throws {
        guard plan.publishers > 0 else {
            throw ChildProcess.Failure(description: "found no publisher, expected at least one: nothing would be shown")
        }
        self.plan = plan
        self.reel = reel
        self.folder = folder
        self.say = say
        brokers = try plan.kafka.map { try LocalKafka($0, brokers: 3) }
        var log = "sqlite:\(folder)/log.sqlite"
        if let brokers {
            log = "kafka:\(brokers.bootstrap)"
            try ChildProcess.output(of: reel, ["topic", "create", "--log", log, "--partitions", "\(Self.partitions)"])
        }
        cluster = try LocalCluster(
            reel: reel,
            log: log,
            folder: folder,
            gateways: plan.gateways,
            snapshots: plan.snapshots,
            common: ["--partitions", "\(Self.partitions)"]
        )
        proxies = try cluster.gateways.map { try FaultProxy(to: $0.url) }
        histories = try HistoryFolder(folder)
        driver = histories.history(of: "driver", .driver)
        var load = LoadPlan(urls: proxies.map(\.url), streams: LoadPlan.streams("chaos", count: 8) ?? [])
        load.publishers = plan.publishers
        load.readers = plan.readers
        load.rate = plan.rate
        load.seed = plan.seed
        load.settleSeconds = 90
        load.histories = histories
        self.load = try LoadRun(load)
    }

    /// Breaks, undoes and heals; then waits until everything has arrived, and dumps the log beside the histories.
    public func run() async throws -> ChaosReport {
        let running = Task { [load] in try await load.run() }
        startMs = Clock.nowMs()
        do {
            try await acks(Int(plan.rate))
            try await breakThings()
            try await allReady()
            driver.healed()
            say(line("everything is healed"))
            try await acks(Int(plan.rate) * 2)
        } catch {
            load.stop()
            _ = try? await running.value
            throw error
        }
        load.stop()
        let report = try await running.value
        driver.ended(unacked: 0)
        try histories.flush()
        for index in rows.indices { rows[index].longestAckNs = longestAck(rows[index], report.statistics) }
        try dump()
        return ChaosReport(rows: rows, load: report)
    }

    /// Nothing more is broken; `run` returns once all is healed and has arrived. From any thread.
    public var stop: @Sendable () -> Void {
        let stopped = stopped
        return { stopped.isAsked.store(true, ordering: .relaxed) }
    }

    private var isStopped: Bool { stopped.isAsked.load(ordering: .relaxed) }

    /// Ends all processes.
    public func end() {
        for proxy in proxies { proxy.end() }
        cluster.end()
    }

    // MARK: The schedule

    private func breakThings() async throws {
        let faults = ChaosFault.schedule(
            seed: plan.seed,
            forMs: Int64(plan.seconds ?? Self.secondsMax) * 1_000,
            gateways: plan.gateways,
            snapshots: plan.snapshots,
            brokers: brokers == nil ? 0 : 3
        )
        let beginMs = nowMs
        var next = faults[...]
        var lasting: [(fault: ChaosFault, fromMs: Int64, reconnects: Int)] = []
        // What takes time to do, such as the start of a broker, puts off what comes later.
        var lateMs: Int64 = 0
        while !next.isEmpty || !lasting.isEmpty {
            if isStopped { next = [] }
            if let wanted = next.first, beginMs + wanted.atMs + lateMs <= nowMs {
                next.removeFirst()
                let fromMs = nowMs
                guard let fault = placed(wanted, beside: lasting.map(\.fault)) else {
                    say(line("\(wanted.target) \(wanted.kind.title): left out, it would hit nobody, or what is broken"))
                    continue
                }
                lasting.append((fault, fromMs, try await strike(fault)))
                lateMs += nowMs - fromMs
                say(line("\(fault.target) \(fault.kind.title) …"))
            } else if let index = lasting.firstIndex(where: { isOver($0.fault, since: $0.fromMs) }) {
                let (fault, fromMs, reconnects) = lasting.remove(at: index)
                let undoneMs = nowMs
                let proof = try await undo(fault, reconnectsBefore: reconnects)
                lateMs += nowMs - undoneMs
                if proof == nil, isStopped, undoneMs - fromMs < fault.lastsMs {
                    say(line("\(fault.target) \(fault.kind.title): healed before it could show"))
                    continue
                }
                rows.append(ChaosReport.Row(fault: fault, fromMs: fromMs, toMs: nowMs, proof: proof))
                driver.fault(fault.kind.title, on: "\(fault.target)", proof: proof ?? "none")
                let lasted = Self.seconds(nowMs - fromMs)
                say(line("\(fault.target) \(fault.kind.title) for \(lasted): \(proof ?? "NO EFFECT")"))
            } else {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        rows.sort { $0.fromMs < $1.fromMs }
    }

    /// Whether it has lasted as long as it should, and has shown: on a busy machine that may take longer.
    private func isOver(_ fault: ChaosFault, since fromMs: Int64) -> Bool {
        let overdueMs = nowMs - fromMs - fault.lastsMs
        return overdueMs >= 0 && hasShown(fault) || overdueMs >= Self.patienceMs || isStopped
    }

    /// Milliseconds from the start.
    private var nowMs: Int64 { Clock.nowMs() - startMs }

    private func line(_ what: String) -> String {
        let at = Self.seconds(nowMs)
        return String(repeating: " ", count: max(0, 9 - at.count)) + at + "  " + what
    }

    private static func seconds(_ ms: Int64) -> String { "\(ms / 1_000).\(ms % 1_000 / 100) s" }

    // MARK: Waiting

    private func acks(_ count: Int) async throws {
        let goal = try await load.statistics().acked + count
        try await eventually("\(count) more acks") { try await load.statistics().acked >= goal }
    }

    private func allReady() async throws {
        for node in cluster.nodes {
            try await eventually("\(node.name) is ready") {
                (try? await cluster.ask("GET", node, "/readyz"))?.status == 200
            }
        }
    }

    private func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
        let end = Clock.nowMs() + 120_000
        while try await !isTrue() {
            guard Clock.nowMs() < end else {
                throw ChildProcess.Failure(description: "in vain for two minutes: \(what)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: Evidence

    private func longestAck(_ row: ChaosReport.Row, _ statistics: LoadStatistics) -> Int64 {
        // What was due in the last moment of it is acked a little later.
        let seconds = Int(row.fromMs / 1_000)...Int(row.toMs / 1_000 + 3)
        return statistics.seconds.indices.filter(seconds.contains).map {
            Int64(clamping: statistics.seconds[$0].ack.max)
        }.max()
            ?? 0
    }

    private func dump() throws {
        let errors = "\(folder)/dump.log"
        let words = ["dump", "--log", cluster.log]
        let dump = try ChildProcess(reel, words, outputLog: "\(folder)/log.jsonl", errorLog: errors)
        guard dump.wait(timeoutMs: 300_000) == .exited(0) else {
            throw ChildProcess.Failure(description: "the log cannot be dumped; \(errors) says why")
        }
    }
}
