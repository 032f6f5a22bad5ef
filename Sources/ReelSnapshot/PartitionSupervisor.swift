import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Synchronization

/// Keeps one partition folded for as long as the node runs: a thread that opens the file, tails the log from where the
/// file ends, and folds. Whatever goes wrong, it begins again from the file, which is never ahead of its own data;
/// a file that cannot be used is put aside and made anew from the log.
final class PartitionSupervisor: @unchecked Sendable {
    /// The time, in milliseconds, that a stream waits before it is called slow.
    private static let slowMs: Int64 = 5_000
    /// The longest turn of a stream.
    private static let turnMax = Duration.milliseconds(50)

    let identity: SnapshotFile.Identity
    let place: PartitionFileSlot
    private let log: any EventLog
    private let number: Int
    private let deployment: Deployment
    private let settings: SnapshotSettings
    private let logger: Logger
    private let metrics: SnapshotMetrics
    private let status = Mutex(Status())
    private let mailbox = Mutex<BoundedBatchQueue?>(nil)
    private let doubts = Mutex<StateReader.Damage?>(nil)
    private let warnings = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    private let slowStreams = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    private let isStopping = Atomic<Bool>(false)
    /// The time that folding and writing have taken, in nanoseconds.
    let foldedNs = Atomic<Int64>(0)
    /// The questions that wait until a seq is folded.
    let waits = FoldWaiters()
    private let wake = CancellableSleep()
    /// The stream that waits at the lowest seq, and since when; nil: none waits. Belongs to the thread.
    private var slowest: (stream: StreamName, sinceMs: Int64)?
    /// Belongs to the thread.
    private var crowdWatch = CrowdWatch()
    /// How long the next file waits that is made anew; belongs to the thread.
    private var nextFileMs: Int32 = 0
    /// Called once what the epoch begins with was folded; belongs to the thread.
    private var whenOpen: (@Sendable () -> Void)?
    private var thread: LogThread?

    init(
        log: any EventLog,
        number: Int,
        deployment: Deployment,
        partition: Int,
        settings: SnapshotSettings,
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
        self.logger = logger
        self.metrics = metrics
    }

    /// How it stands now. From any thread.
    var now: Status { status.withLock { $0 } }

    /// What the log has lost of the partition. From any thread, for each publish.
    var loss: ReelError? {
        status.withLock { status in
            guard let problem = status.problem, problem.code.isLoss else { return nil }
            return ReelError(problem.code, problem.publicMessage)
        }
    }

    func start() throws(LogError) {
        thread = try LogThread("reel-fold-\(identity.partition)") { self.run() }
    }

    /// Ends the thread behind the batch that it folds. Waits for it.
    func stop() {
        isStopping.store(true, ordering: .sequentiallyConsistent)
        mailbox.withLock { $0 }?.close()
        wake.ring()
        thread?.join()
        thread = nil
    }

    /// A reader found that the rows are not what was written: the file is put aside and made anew. From any thread.
    func doubt(_ damage: StateReader.Damage) {
        doubts.withLock { $0 = damage }
        mailbox.withLock { $0 }?.close()
    }

    /// An answer could not be made, which is said once a minute. From any thread.
    func lacksRoom(_ room: Spool.NoRoom) { unanswered(room.reason, event: "no room for a large answer") }

    /// The same for any other reason, which clients are not told.
    func unanswered(_ detail: String, event: String = "an answer could not be made") {
        guard let unsaid = warnings.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { return }
        logger.warning(
            event,
            ["partition": "\(identity.partition)", "detail": detail, "lines_left_out": "\(unsaid)"]
        )
    }

    // MARK: The thread

    private func run() {
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            do {
                try foldToTheEnd()
                try lookAtDoubts()
            } catch {
                recover(from: error)
            }
        }
        foldBack()
    }

    /// Copies the WAL into the file, so that the file alone is whole and no large WAL stays beside it.
    private func foldBack() {
        // SQLite opens the WAL at the first read. A file that is damaged, or that another program reads, keeps it.
        guard let connection = try? Connection(path: place.path, mode: .readWrite, busyMs: 1_000),
            (try? connection.integer("PRAGMA schema_version")) != nil
        else { return }
        _ = try? connection.checkpoint(.truncate)
    }

    /// A doubt about a file that was put aside meanwhile is none; until then it stays one.
    private func lookAtDoubts() throws {
        let damage = doubts.withLock { $0 }
        if let damage, damage.file == place.current { throw SnapshotFile.Unusable(reason: damage.reason) }
    }

    /// Folds until the node stops, a reader doubts, or something fails.
    private func foldToTheEnd() throws {
        let mailbox = BoundedBatchQueue(records: settings.queuedEvents, bytes: settings.queuedBytes)
        self.mailbox.withLock { $0 = mailbox }
        try lookAtDoubts()
        guard log.epoch == identity.epoch else {
            throw LogError(.epochChanged, "found epoch \(log.epoch), expected \(identity.epoch)")
        }
        // While the log is away nothing is read of the file: opening it looks at all its streams.
        let bounds = try log.bounds(identity.partition)
        let file = try open()
        let position = try StoredPosition(reading: file.connection)
        // On a full disk, too, the file is compared with the log, and answers.
        if position.number != Int64(number) { try file.setMeta("number", Int64(number)) }
        if position.deployment != deployment {
            try file.setMeta("deployment", Int64(bitPattern: deployment.value))
        }
        status.withLock {
            $0.last = position.last
            $0.seq = max($0.seq, position.seq)
        }
        var verifier = try TailVerifier.resuming(position, partition: identity.partition, of: log, bounds)
        let folder = try PartitionProjector(file: file, identity: identity, settings: settings, log: log)
        status.withLock {
            // After a full disk or an outage of the log the goal stays: the state may be old, but it is complete.
            if !$0.isVerified { $0.goal = bounds.last }
            $0.isVerified = true
            $0.note(folder)
        }
        waits.folded(to: now)
        // What was lost was brought back.
        if loss != nil { setWell() }
        crowdWatch.look(at: folder.crowd, logger)
        notifyIfOpen(folder)
        try clearProblemIfIdle(folder)
        let tail = log.tail(identity.partition, from: folder.next, to: mailbox)
        defer {
            // First the mailbox: the log's thread may wait in it.
            mailbox.close()
            tail.cancel()
        }
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            let mail = folder.waitingCount == 0 ? mailbox.take() : folder.isCrowded ? nil : mailbox.takeNow()
            switch mail {
            case nil: try foldWaiting(with: folder)
            case .closed: return
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
            logger.info("snapshot file is brought to a newer format", fields)
        }
        if isUpgraded { logger.info("snapshot file has the newer format", fields) }
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
            // What comes and what waits take turns, each in a transaction of its own: what comes is mostly short.
            repeat {
                try foldWaiting(with: folder)
            } while folder.isCrowded
                && !isStopping.load(ordering: .sequentiallyConsistent)
        } while !rest.isEmpty && !isStopping.load(ordering: .sequentiallyConsistent)
    }

    private func foldWaiting(with folder: PartitionProjector) throws {
        if folder.waitingCount > 0 { _ = try timed(folder) { try folder.foldWaiting() } }
    }

    /// Before folding stops: no stream is left behind for what comes after its records.
    private func foldAllThatWaits(with folder: PartitionProjector) throws {
        while folder.waitingCount > 0, !isStopping.load(ordering: .sequentiallyConsistent) {
            try foldWaiting(with: folder)
        }
    }

    /// Runs one transaction of the fold, and notes what it did.
    private func timed(
        _ folder: PartitionProjector,
        _ body: () throws -> PartitionProjector.Report
    ) throws -> PartitionProjector.Report {
        let (begun, waited) = (ContinuousClock.now, folder.waitingCount)
        let report = try body()
        let (seconds, attoseconds) = (ContinuousClock.now - begun).components
        foldedNs.add(seconds * 1_000_000_000 + attoseconds / 1_000_000_000, ordering: .relaxed)
        // Until all is read that there was at the start most answers wait anyway.
        folder.turn = folder.next <= status.withLock(\.goal) ? max(Self.turnMax, settings.turn) : settings.turn
        metrics.commits.record(folder.commitTime)
        if let time = folder.checkpointTime { metrics.checkpoints.record(time) }
        if report.seqs > 0 || folder.waitingCount != waited { note(report, folder) }
        return report
    }

    private func notifyIfOpen(_ folder: PartitionProjector) {
        guard folder.phase != .seeds, let tell = whenOpen.take() else { return }
        tell()
    }

    /// Where nothing is left to fold, nothing will come that says that a problem is over.
    private func clearProblemIfIdle(_ folder: PartitionProjector) throws(LogError) {
        // A file that took the place of the log's is found by the tail only.
        guard status.withLock({ $0.problem.map { $0.code != .epochChanged } ?? false }) else { return }
        guard try log.bounds(identity.partition).last == folder.floor - 1 else { return }
        setWell()
    }

    /// The partition is folded again, or still. What was logged as begun is logged as ended.
    private func setWell(_ change: (inout Status) -> Void = { _ in }) {
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
        setWell { $0.note(folder) }
        waits.folded(to: now)
        sayWhichWaits()
        crowdWatch.look(at: folder.crowd, logger)
        notifyIfOpen(folder)
        metrics.events.add(report.events)
        metrics.add(report.outcomes)
        metrics.voids.note(report.voids, in: identity.partition)
    }

    /// The stream that is behind the others for some time is named once a minute.
    private func sayWhichWaits() {
        let (status, nowMs) = (now, WallClock.nowMs())
        guard let (stream, next) = status.waiting.min(by: { $0.value < $1.value }) else { return slowest = nil }
        guard let slowest, slowest.stream == stream else { return slowest = (stream, nowMs) }
        guard nowMs - slowest.sinceMs >= Self.slowMs, let unsaid = slowStreams.withLock({ $0.admit(nowMs: nowMs) })
        else { return }
        logger.warning(
            "stream is folded slowly",
            [
                "partition": "\(identity.partition)", "stream": stream.description, "seq": "\(next - 1)",
                "read_to": "\(status.readSeq)", "waiting_streams": "\(status.waiting.count)",
                "waiting_events": "\(status.waitingCount)", "lines_left_out": "\(unsaid)",
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
            // What was lost may be brought back, but not soon.
            if error.code == .diverged || error.code == .aheadOfLog { waitMs = 5_000 }
        case PartitionProjector.Stop.unknownBarrier(let seq):
            problem = SnapshotError(
                .internal,
                "found a barrier at seq \(seq) that this version does not know; run a newer one"
            )
            waitMs = 10_000
        case PartitionProjector.Stop.hole(let found, let expected):
            problem = SnapshotError(.nodeBehind, "the log went on at seq \(found), expected \(expected)")
        default:
            problem = SnapshotError(.internal, "\(error)")
        }
        let isNews = status.withLock { status in
            // A loss that was witnessed stays one while the log is away, until the file was compared with it again.
            if status.problem?.code.isLoss == true, !problem.code.isLoss { return false }
            defer { status.problem = problem }
            // What the log does not have any more is answered again once the two were compared, not once it is away.
            if Status.refusal(by: problem) != nil { status.isVerified = false }
            return status.problem != problem
        }
        if isNews {
            logger.error(
                "folding stopped",
                ["partition": "\(identity.partition)", "code": problem.code.rawValue, "detail": problem.message]
            )
        }
        if waitMs > 0 { wake.wait(ms: waitMs) }
    }

    /// Puts the file aside, and says how long to wait before the next one is made: longer each time, as long as this
    /// process runs, up to a minute.
    private func putAside(_ reason: String) -> (problem: SnapshotError, waitMs: Int32) {
        do throws(PartitionFileSlot.NotPutAside) {
            let aside = try place.putAside()
            status.withLock { $0 = Status() }
            logger.warning("file put aside", ["file": place.path, "as": aside, "reason": reason])
            defer { nextFileMs = min(60_000, max(1_000, 2 * nextFileMs)) }
            return (SnapshotError(.nodeBehind, "the snapshot's file could not be used and is made anew"), nextFileMs)
        } catch {
            return (SnapshotError(.internal, "the snapshot's file cannot be used: \(reason); \(error.reason)"), 10_000)
        }
    }
}

extension [PartitionSupervisor] {
    /// How the log does; the worst of what the partitions meet.
    var logState: LogState { map(\.now.log).max() ?? .ok }
}
