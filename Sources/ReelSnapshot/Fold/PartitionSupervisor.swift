import ReelBase
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Synchronization

/// Keeps one partition folded while the node runs. Its thread opens the file, tails the log from the file's position
/// on, and folds.
///
/// After any error the thread starts again from the file. The file's position is never ahead of its data. A file that
/// cannot be used is set aside, and a new one is folded from the log.
final class PartitionSupervisor: @unchecked Sendable {
    /// The time after which a stream that waits is logged as slow, in milliseconds.
    private static let slowMs: Int64 = 5_000
    /// The longest turn of a stream. It applies while the node catches up with the log's end as of the start.
    private static let turnMax = Duration.milliseconds(50)

    let identity: SnapshotFile.Identity
    let place: PartitionFileSlot
    private let log: any EventLog
    private let number: Int
    private let deployment: Deployment
    private let settings: SnapshotSettings
    private let budget: CacheBudget
    private let logger: Logger
    private let metrics: SnapshotMetrics
    private let status = Mutex(Status())
    private let mailbox = Mutex<BoundedBatchQueue?>(nil)
    private let damageReport = Mutex<StateReader.Damage?>(nil)
    private let warnings = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    private let slowStreams = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    private let isStopping = Atomic<Bool>(false)
    /// The time spent in folding and writing, in nanoseconds.
    let foldedNs = Atomic<Int64>(0)
    /// The requests that wait until a seq is folded.
    let waits = FoldWaiters()
    private let wake = CancellableSleep()
    /// The stream that waits at the lowest seq, and since when; nil: none waits. On the fold thread.
    private var slowest: (stream: StreamName, sinceMs: Int64)?
    /// On the fold thread.
    private var crowdWatch = CrowdWatch()
    /// The delay before the next new file is made, in milliseconds. On the fold thread.
    private var nextFileMs: Int32 = 0
    /// Called once, when the seeds of the epoch are folded. On the fold thread.
    private var whenOpen: (@Sendable () -> Void)?
    private var thread: LogThread?

    init(
        log: any EventLog,
        number: Int,
        deployment: Deployment,
        partition: Int,
        settings: SnapshotSettings,
        budget: CacheBudget,
        logger: Logger,
        metrics: SnapshotMetrics,
        whenOpen: @escaping @Sendable () -> Void
    ) {
        self.whenOpen = whenOpen
        identity = SnapshotFile.Identity(epoch: log.epoch, partition: partition, partitions: log.partitions)
        place = PartitionFileSlot(
            EpochFolders.file(partition, in: EpochFolders.path(of: log.epoch, in: settings.folder))
        )
        self.log = log
        self.number = number
        self.deployment = deployment
        self.settings = settings
        self.budget = budget
        self.logger = logger
        self.metrics = metrics
    }

    /// A copy of the current status. From any thread.
    var now: Status { status.withLock { $0 } }

    /// The records that the log has lost in the partition; nil: none. Called for each publish. From any thread.
    var loss: ReelError? {
        status.withLock { status in
            guard let problem = status.problem, problem.code.isLoss else { return nil }
            return ReelError(problem.code, problem.publicMessage)
        }
    }

    func start() throws(LogError) {
        thread = try LogThread("reel-fold-\(identity.partition)") { self.run() }
    }

    /// Stops the thread after the batch that it folds, and waits for it.
    func stop() {
        isStopping.store(true, ordering: .sequentiallyConsistent)
        mailbox.withLock { $0 }?.close()
        wake.ring()
        thread?.join()
        thread = nil
    }

    /// Reports that a reader found damaged rows. The fold thread then sets the file aside and makes a new one. From any
    /// thread.
    func doubt(_ damage: StateReader.Damage) {
        damageReport.withLock { $0 = damage }
        mailbox.withLock { $0 }?.close()
    }

    /// Logs that the disk had no space for a response, at most once a minute. From any thread.
    func lacksRoom(_ room: Spool.NoRoom) { unanswered(room.reason, event: "no disk space for a large response") }

    /// Logs that a response failed for a reason that clients do not see, at most once a minute. From any thread.
    func unanswered(_ detail: String, event: String = "response failed") {
        guard let leftOut = warnings.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { return }
        logger.warning(
            event,
            ["partition": "\(identity.partition)", "detail": detail, "lines_left_out": "\(leftOut)"]
        )
    }

    // MARK: The thread

    private func run() {
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            do {
                try foldToTheEnd()
                try checkDamageReport()
            } catch {
                recover(from: error)
            }
        }
        checkpointWAL()
    }

    /// Copies the WAL into the file, so that the file is complete without a large WAL.
    private func checkpointWAL() {
        // SQLite opens the WAL at the first read. SQLite keeps the WAL of a damaged file, or of one that another
        // program reads.
        guard let connection = try? Connection(path: place.path, mode: .readWrite),
            (try? connection.integer("PRAGMA schema_version")) != nil
        else { return }
        _ = try? connection.checkpoint(.truncate)
    }

    /// Throws if a reader has reported damage of the current file. A report about a file that was set aside since then
    /// is void; until then it stays valid.
    private func checkDamageReport() throws {
        let damage = damageReport.withLock { $0 }
        if let damage, damage.file == place.current { throw SnapshotFile.Unusable(reason: damage.reason) }
    }

    /// Folds until the node stops, a reader reports damage, or something fails.
    private func foldToTheEnd() throws {
        let mailbox = BoundedBatchQueue(records: settings.queuedEvents, bytes: settings.queuedBytes)
        self.mailbox.withLock { $0 = mailbox }
        try checkDamageReport()
        guard log.epoch == identity.epoch else {
            throw LogError(.epochChanged, "found epoch \(log.epoch), expected \(identity.epoch)")
        }
        // Ask the log first: opening the file reads all of its streams, which is useless while the log is unavailable.
        let bounds = try log.bounds(identity.partition)
        let file = try open()
        let position = try StoredPosition(reading: file.connection)
        // Write only values that differ: on a full disk, too, the file is compared with the log and answers requests.
        if position.number != Int64(number) { try file.setMeta("number", Int64(number)) }
        if position.deployment != deployment {
            try file.setMeta("deployment", Int64(bitPattern: deployment.value))
        }
        status.withLock {
            $0.last = position.last
            $0.seq = max($0.seq, position.seq)
        }
        var verifier = try TailVerifier.resuming(position, partition: identity.partition, of: log, bounds)
        budget.join(identity.partition) { mailbox.trim() }
        defer { budget.leave(identity.partition) }
        let folder = try PartitionProjector(
            file: file,
            identity: identity,
            settings: settings,
            budget: budget,
            log: log
        )
        status.withLock {
            // After a full disk or an outage of the log the goal stays: the state may be old, but it is complete.
            if !$0.isVerified { $0.goal = bounds.last }
            $0.isVerified = true
            $0.note(folder)
        }
        waits.folded(to: now)
        // The log has the lost records again.
        if loss != nil { clearProblem() }
        crowdWatch.look(at: folder.crowd, logger)
        notifyIfOpen(folder)
        try clearProblemIfIdle(folder)
        let tail = log.tail(identity.partition, from: folder.next, to: mailbox)
        defer {
            // Close the queue first: the log's thread may be waiting in it.
            mailbox.close()
            tail.cancel()
        }
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            let mail = folder.waitingCount == 0 ? mailbox.take() : folder.isCrowded ? nil : mailbox.takeNow()
            switch mail {
            case nil: try foldWaiting(with: folder)
            case .closed: return
            case .trim: folder.trim()
            case .failed(let error):
                try foldAllThatWaits(with: folder)
                throw error
            case .batches(let batches):
                for batch in batches where !isStopping.load(ordering: .sequentiallyConsistent) {
                    try verifier.take(batch)
                    try fold(batch, with: folder)
                }
            }
        }
    }

    private func open() throws -> SnapshotFile {
        let fields: KeyValuePairs = ["partition": "\(identity.partition)", "file": place.path]
        var isUpgraded = false
        let file = try SnapshotFile(path: place.path, identity: identity, number: number) {
            isUpgraded = true
            logger.info("snapshot file upgrade started", fields)
        }
        if isUpgraded { logger.info("snapshot file upgrade finished", fields) }
        return file
    }

    private func fold(_ batch: RecordBatch, with folder: PartitionProjector) throws {
        var rest = batch.entries[...]
        repeat {
            let part = rest.prefix(settings.batchEvents)
            rest = rest.dropFirst(part.count)
            let end = rest.first?.seq ?? batch.seqs.upperBound
            let report = try timed(folder) { try folder.fold(part, of: batch, upTo: end) }
            if let seq = report.unknownBarrier {
                try foldAllThatWaits(with: folder)
                throw PartitionProjector.Stop.unknownBarrier(seq)
            }
            // New records and waiting records alternate, each in a transaction of its own: a batch of new records is
            // mostly short.
            repeat {
                try foldWaiting(with: folder)
            } while folder.isCrowded
                && !isStopping.load(ordering: .sequentiallyConsistent)
        } while !rest.isEmpty && !isStopping.load(ordering: .sequentiallyConsistent)
    }

    private func foldWaiting(with folder: PartitionProjector) throws {
        if folder.waitingCount > 0 { _ = try timed(folder) { try folder.foldWaiting() } }
    }

    /// Folds all waiting records before folding stops, so that every stream is folded up to the last record that was
    /// read.
    private func foldAllThatWaits(with folder: PartitionProjector) throws {
        while folder.waitingCount > 0, !isStopping.load(ordering: .sequentiallyConsistent) {
            try foldWaiting(with: folder)
        }
    }

    /// Runs one transaction of the fold and records its metrics.
    private func timed(
        _ folder: PartitionProjector,
        _ body: () throws -> PartitionProjector.Report
    ) throws -> PartitionProjector.Report {
        let (begun, waited) = (ContinuousClock.now, folder.waitingCount)
        let report = try body()
        let (seconds, attoseconds) = (ContinuousClock.now - begun).components
        foldedNs.add(seconds * 1_000_000_000 + attoseconds / 1_000_000_000, ordering: .relaxed)
        // Until the node has read the log's end as of the start, most requests wait anyway, so turns may be longer.
        folder.turn = folder.next <= status.withLock(\.goal) ? max(Self.turnMax, settings.turn) : settings.turn
        metrics.commits.record(folder.commitTime)
        if let time = folder.checkpointTime { metrics.checkpoints.record(time) }
        // Folding without writing leaves the count of waiting records as it is.
        if report.seqs > 0 || report.events > 0 || folder.waitingCount != waited { note(report, folder) }
        return report
    }

    private func notifyIfOpen(_ folder: PartitionProjector) {
        guard folder.phase != .seeds, let notify = whenOpen.take() else { return }
        notify()
    }

    /// Clears the problem if nothing is left to fold: no later batch would clear it.
    private func clearProblemIfIdle(_ folder: PartitionProjector) throws(LogError) {
        // Only the tail detects that another file has replaced the log's file.
        guard status.withLock({ $0.problem.map { $0.code != .epochChanged } ?? false }) else { return }
        guard try log.bounds(identity.partition).last == folder.floor - 1 else { return }
        clearProblem()
    }

    /// Clears the problem, since the partition is folded, and logs that folding resumed. Each logged problem gets such
    /// a line.
    private func clearProblem(_ change: (inout Status) -> Void = { _ in }) {
        let problem = status.withLock { status in
            change(&status)
            return status.problem.take()
        }
        guard let problem else { return }
        logger.info(
            "folding resumed",
            ["partition": "\(identity.partition)", "code": problem.code.rawValue, "seq": "\(now.seq)"]
        )
    }

    private func note(_ report: PartitionProjector.Report, _ folder: PartitionProjector) {
        clearProblem { $0.note(folder) }
        waits.folded(to: now)
        logSlowestStream()
        crowdWatch.look(at: folder.crowd, logger)
        notifyIfOpen(folder)
        metrics.events.add(report.events)
        metrics.add(report.outcomes)
        metrics.voids.note(report.voids, in: identity.partition)
    }

    /// Logs the slowest stream once a minute if it has been waiting longer than `slowMs`.
    private func logSlowestStream() {
        let (status, nowMs) = (now, WallClock.nowMs())
        guard let (stream, next) = status.waiting.min(by: { $0.value < $1.value }) else { return slowest = nil }
        guard let slowest, slowest.stream == stream else { return slowest = (stream, nowMs) }
        guard nowMs - slowest.sinceMs >= Self.slowMs, let leftOut = slowStreams.withLock({ $0.admit(nowMs: nowMs) })
        else { return }
        logger.warning(
            "stream is folded slowly",
            [
                "partition": "\(identity.partition)", "stream": stream.description, "seq": "\(next - 1)",
                "read_to": "\(status.readSeq)", "waiting_streams": "\(status.waiting.count)",
                "waiting_events": "\(status.waitingCount)", "lines_left_out": "\(leftOut)",
            ]
        )
    }

    // MARK: When something fails

    private func recover(from error: any Error) {
        var waitMs: Int32 = 1_000
        let problem: SnapshotError
        switch error {
        case let error where SnapshotFile.isDamage(error):
            (problem, waitMs) = putAside((error as? SnapshotFile.Unusable)?.reason ?? "\(error)")
        case let error as SQLiteError:
            let told = "the snapshot cannot be written now"
            problem = SnapshotError(.nodeBehind, "the snapshot cannot be written: \(error)", told: told)
        case let error as LogError where error.code == .truncated:
            problem = SnapshotError(
                .truncated,
                "\(error.message): the log was trimmed while this node did not read it; stop it, put a copy of the"
                    + " folder \(identity.epoch) of another snapshot node, also stopped, in place of its own, and start"
                    + " it",
                told: "the log was trimmed while this node did not read it; ask another node"
            )
            waitMs = 5_000
        case let error as LogError:
            problem = SnapshotError(error)
            // Lost records may be restored, but not within seconds.
            if error.code == .diverged || error.code == .aheadOfLog { waitMs = 5_000 }
        case PartitionProjector.Stop.unknownBarrier(let seq):
            problem = SnapshotError(
                .internal,
                "found a barrier at seq \(seq) that this version does not know; run a newer one"
            )
            waitMs = 10_000
        case PartitionProjector.Stop.hole(let found, let expected):
            problem = SnapshotError(.nodeBehind, "the log continued at seq \(found), expected \(expected)")
        default:
            problem = SnapshotError(.internal, "\(error)")
        }
        let isNew = status.withLock { status in
            // A detected loss stays the problem while the log is unavailable, until the file was compared with the log
            // again.
            if status.problem?.code.isLoss == true, !problem.code.isLoss { return false }
            defer { status.problem = problem }
            // A log that contradicts the file refuses all requests. They are answered again only after a new
            // comparison, not because the log becomes unavailable.
            if Status.refusal(by: problem) != nil { status.isVerified = false }
            return status.problem != problem
        }
        if isNew {
            logger.error(
                "folding stopped",
                ["partition": "\(identity.partition)", "code": problem.code.rawValue, "detail": problem.message]
            )
        }
        if waitMs > 0 { wake.wait(ms: waitMs) }
    }

    /// Sets the file aside. Returns the problem and the delay before the next file is made, in milliseconds. The delay
    /// doubles with each file, from 1 s up to one minute, until the process ends.
    private func putAside(_ reason: String) -> (problem: SnapshotError, waitMs: Int32) {
        do throws(PartitionFileSlot.NotPutAside) {
            let aside = try place.putAside()
            status.withLock { $0 = Status() }
            logger.warning("file put aside", ["file": place.path, "as": aside, "reason": reason])
            defer { nextFileMs = min(60_000, max(1_000, 2 * nextFileMs)) }
            return (SnapshotError(.nodeBehind, "the snapshot's file could not be used; a new one is made"), nextFileMs)
        } catch {
            return (SnapshotError(.internal, "the snapshot's file cannot be used: \(reason); \(error.reason)"), 10_000)
        }
    }
}

extension [PartitionSupervisor] {
    /// The state of the log: the worst state that any partition sees.
    var logState: LogState { map(\.now.log).max() ?? .ok }
}
