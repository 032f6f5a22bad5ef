import Glibc
import ReelBase
import ReelClient
import ReelCore
import ReelNet
import Synchronization

/// A cluster of local processes under load, with faults that follow from a seed. The observations of all clients are
/// kept for the checker.
///
/// Use it from one task at a time.
public final class ChaosRun {
    let plan: ChaosPlan
    let reel: String
    let folder: String
    let brokers: LocalKafka?
    let cluster: LocalCluster
    /// A proxy for each gateway, and for each broker.
    let ways: [(target: ChaosFault.Target, proxy: FaultProxy)]
    /// The load of the clients.
    public let load: LoadRun
    private let histories: HistoryFolder
    private let driver: History
    private let say: (String) -> Void
    private var startMs: Int64 = 0
    private var rows: [ChaosReport.Row] = []
    private var lasting: [Lasting] = []
    private let flags = Flags()

    private final class Flags: Sendable {
        let isStopAsked = Atomic<Bool>(false)
        let hasLoadEnded = Atomic<Bool>(false)
    }

    /// A fault that was applied.
    private struct Lasting {
        let fault: ChaosFault
        let fromMs: Int64
        let reconnects: Int
        /// The time at which the fault was undone, while its target does not work again yet. Nil: the fault lasts.
        var undoneMs: Int64?
        /// The evidence that the fault took effect.
        var proof: String?
    }

    private static let partitions = 6
    /// The maximum time that a fault may need to take effect, in addition to its duration.
    private static let patienceMs: Int64 = 20_000
    /// The maximum time that a process may need to work again.
    private static let comebackMs: Int64 = 300_000
    /// The duration of a run without a given end: one week.
    private static let secondsMax = 7 * 86_400

    /// Starts the cluster.
    ///
    /// - Parameters:
    ///   - plan: the processes, the load and the faults of the run.
    ///   - reel: the path of the program `reel`.
    ///   - folder: the path of a new folder, for all files of the run.
    ///   - say: called with each line of the timeline.
    /// - Throws: `LoadFailure` if the plan is not valid, or there are too few file descriptors. `ChildProcess.Failure`
    ///   if the folder contains the histories of another run, or a process does not start. `NetError` if there is no
    ///   descriptor or thread left.
    public init(_ plan: ChaosPlan, reel: String, folder: String, say: @escaping (String) -> Void) throws {
        try plan.check()
        self.plan = plan
        self.reel = reel
        self.folder = folder
        self.say = say
        // This creates the folder.
        histories = try HistoryFolder(folder)
        driver = histories.history(of: "driver", .driver)
        brokers = try plan.kafka.map { try LocalKafka($0, brokers: plan.brokers, isProxied: true) }
        var log = "sqlite:\(folder)/log.sqlite"
        if let brokers {
            log = "kafka:\(brokers.proxied)"
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
        let proxies = try cluster.gateways.map { try FaultProxy(to: $0.port) }
        ways =
            proxies.indices.map { (.gateway($0), proxies[$0]) }
            + (1...3).compactMap { [brokers] number in brokers?.proxy(number).map { (.broker(number), $0) } }
        var load = LoadPlan(urls: proxies.map(\.url), streams: LoadPlan.streams("chaos", count: 8) ?? [])
        load.publishers = plan.publishers
        load.readers = plan.readers
        load.rate = plan.rate
        load.seed = plan.seed
        load.patienceSeconds = 60
        load.settleSeconds = 90
        load.histories = histories
        self.load = try LoadRun(load)
    }

    /// Applies and undoes the faults, and waits until everything works. Then waits until everything has arrived, and
    /// dumps the log next to the histories. Throws if the load ends early, or if a process does not work again.
    public func run() async throws -> ChaosReport {
        let running = Task { [load, flags] in
            defer { flags.hasLoadEnded.store(true, ordering: .relaxed) }
            return try await load.run()
        }
        startMs = MonotonicClock.nowMs()
        do {
            try await acks(Int(plan.rate))
            try await breakThings()
            try await allReady()
            driver.healed()
            say(line("everything is healed"))
            try await acks(Int(plan.rate) * 2)
        } catch {
            load.stop()
            // If the load has ended, its reason says more than the error that followed from it.
            _ = try await running.value
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

    /// Stops further faults. `run` returns once everything works and has arrived. From any thread.
    public var stop: @Sendable () -> Void {
        let flags = flags
        return { flags.isStopAsked.store(true, ordering: .relaxed) }
    }

    private var isStopped: Bool { flags.isStopAsked.load(ordering: .relaxed) }

    /// Ends all processes.
    public func end() {
        for way in ways { way.proxy.end() }
        cluster.end()
    }

    // MARK: The schedule

    private func breakThings() async throws {
        let faults = ChaosFault.schedule(
            seed: plan.seed,
            forMs: Int64(plan.seconds ?? Self.secondsMax) * 1_000,
            gateways: plan.gateways,
            snapshots: plan.snapshots,
            brokers: plan.brokers
        )
        let beginMs = nowMs
        var next = faults[...]
        while !next.isEmpty || !lasting.isEmpty {
            try loadRuns()
            if isStopped { next = [] }
            if let wanted = next.first, beginMs + wanted.atMs <= nowMs {
                next.removeFirst()
                try await begin(wanted)
            } else if try await !endOne() {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        rows.sort { $0.fromMs < $1.fromMs }
    }

    private func begin(_ wanted: ChaosFault) async throws {
        guard let fault = placed(wanted, beside: lasting.map(\.fault)) else {
            say(line("\(wanted.target) \(wanted.kind.title): skipped, without effect or broken already"))
            return
        }
        let fromMs = nowMs
        let reconnects = try await strike(fault)
        lasting.append(Lasting(fault: fault, fromMs: fromMs, reconnects: reconnects))
        say(line("\(fault.target) \(fault.kind.title) …"))
    }

    /// Undoes a fault that has lasted long enough, or notes a target that works again. Returns false if there was
    /// nothing to do.
    private func endOne() async throws -> Bool {
        if let index = lasting.firstIndex(where: isOver) {
            lasting[index].undoneMs = nowMs
            let over = lasting[index]
            lasting[index].proof = try await undo(over.fault, reconnectsBefore: over.reconnects)
            return true
        }
        guard let index = try lasting.firstIndex(where: isBack) else { return false }
        ended(lasting.remove(at: index))
        return true
    }

    /// Records a fault that was applied and undone.
    private func ended(_ lasting: Lasting) {
        guard let undoneMs = lasting.undoneMs else { return }
        let (fault, fromMs, proof) = (lasting.fault, lasting.fromMs, lasting.proof)
        if proof == nil, isStopped, undoneMs - fromMs < fault.lastsMs {
            return say(line("\(fault.target) \(fault.kind.title): healed before it could show"))
        }
        rows.append(ChaosReport.Row(fault: fault, fromMs: fromMs, toMs: nowMs, proof: proof))
        driver.fault(fault.kind.title, on: "\(fault.target)", proof: proof ?? "none")
        let lasted = Self.seconds(nowMs - fromMs)
        say(line("\(fault.target) \(fault.kind.title) for \(lasted): \(proof ?? "NO EFFECT")"))
    }

    /// Returns true if the fault must be undone. It has lasted for its duration and has taken effect, which may take
    /// longer on a busy machine. Or it has not taken effect within `patienceMs`, or the run was stopped.
    private func isOver(_ lasting: Lasting) -> Bool {
        guard lasting.undoneMs == nil else { return false }
        let overdueMs = nowMs - lasting.fromMs - lasting.fault.lastsMs
        return overdueMs >= 0 && hasShown(lasting.fault) || overdueMs >= Self.patienceMs || isStopped
    }

    private func isBack(_ lasting: Lasting) throws -> Bool {
        guard let undoneMs = lasting.undoneMs else { return false }
        if try isBack(lasting.fault) { return true }
        guard nowMs - undoneMs < Self.comebackMs else {
            throw ChildProcess.Failure(
                description: "\(lasting.fault.target) was \(lasting.fault.kind.title) and does not come back;"
                    + " its log is in \(folder)"
            )
        }
        return false
    }

    /// Throws if the load has ended too early.
    private func loadRuns() throws {
        guard flags.hasLoadEnded.load(ordering: .relaxed) else { return }
        throw ChildProcess.Failure(description: "the clients stopped while things were being broken")
    }

    /// Milliseconds from the start.
    private var nowMs: Int64 { MonotonicClock.nowMs() - startMs }

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
        let end = MonotonicClock.nowMs() + 120_000
        while try await !isTrue() {
            try loadRuns()
            guard MonotonicClock.nowMs() < end else {
                throw ChildProcess.Failure(description: "in vain for two minutes: \(what)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: Evidence

    private func longestAck(_ row: ChaosReport.Row, _ statistics: LoadStatistics) -> Int64 {
        // An event that was due at the last moment of the fault is acked a little later.
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
