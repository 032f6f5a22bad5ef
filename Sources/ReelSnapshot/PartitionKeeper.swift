import Glibc
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import Synchronization

/// Keeps one partition folded for as long as the node runs: a thread that opens the file, tails the log from where the
/// file ends, and folds. Whatever goes wrong, it begins again from the file, which is never ahead of its own data;
/// a file that cannot be used is put aside and made anew from the log.
final class PartitionKeeper: @unchecked Sendable {
    /// How the partition stands, for those who ask.
    struct Status: Sendable {
        /// The last seq that the file holds; −1: none.
        var seq = Seq.none
        /// Why it does not go on; nil: it does.
        var problem: SnapshotError?
    }

    let identity: SnapshotFile.Identity
    let path: String
    private let log: any EventLog
    private let settings: SnapshotSettings
    private let journal: Journal
    private let metrics: SnapshotMetrics
    private let status = Mutex(Status())
    private let mailbox = Mutex<Mailbox?>(nil)
    private let suspicion = Mutex<String?>(nil)
    private let isStopping = Atomic<Bool>(false)
    private let wake: Wake
    private var thread: LogThread?

    init(
        log: any EventLog,
        partition: Int,
        settings: SnapshotSettings,
        journal: Journal,
        metrics: SnapshotMetrics
    ) {
        identity = SnapshotFile.Identity(epoch: log.epoch, partition: partition, partitions: log.partitions)
        path = "\(settings.folder)/partition-\(partition).sqlite"
        self.log = log
        self.settings = settings
        self.journal = journal
        self.metrics = metrics
        wake = Wake()
    }

    /// How it stands now. From any thread.
    var now: Status { status.withLock { $0 } }

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
    func doubt(_ reason: String) {
        suspicion.withLock { $0 = $0 ?? reason }
        mailbox.withLock { $0 }?.close()
    }

    // MARK: The thread

    private func run() {
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            do {
                try foldToTheEnd()
                if let reason = suspicion.withLock({ $0.take() }) { throw SnapshotFile.Unusable(reason: reason) }
            } catch {
                recover(from: error)
            }
        }
    }

    /// Folds until the node stops or something fails.
    private func foldToTheEnd() throws {
        let file = try SnapshotFile(path: path, identity: identity)
        let folder = try PartitionFolder(file: file, identity: identity, settings: settings)
        status.withLock { $0.seq = folder.next - 1 }
        let mailbox = Mailbox(capacity: settings.queuedEvents)
        self.mailbox.withLock { $0 = mailbox }
        let tail = log.tail(identity.partition, from: folder.next, to: mailbox)
        defer {
            mailbox.close()
            tail.cancel()
        }
        while !isStopping.load(ordering: .sequentiallyConsistent) {
            switch mailbox.take() {
            case .closed: return
            case .failed(let error): throw error
            case .batches(let batches):
                for batch in batches { try fold(batch, with: folder) }
            }
        }
    }

    private func fold(_ batch: RecordBatch, with folder: PartitionFolder) throws {
        guard batch.seqs.lowerBound == folder.next else {
            throw PartitionFolder.Stop.hole(found: batch.seqs.lowerBound, expected: folder.next)
        }
        var rest = batch.entries[...]
        repeat {
            let part = rest.prefix(settings.batchEvents)
            rest = rest.dropFirst(part.count)
            let end = rest.first?.seq ?? batch.seqs.upperBound
            let report = try folder.fold(part, of: batch, upTo: end)
            metrics.commits.record(Int(folder.commitTime / .microseconds(1)))
            note(report, at: folder.next - 1)
        } while !rest.isEmpty && !isStopping.load(ordering: .sequentiallyConsistent)
    }

    private func note(_ report: PartitionFolder.Report, at seq: Seq) {
        status.withLock { $0 = Status(seq: seq) }
        metrics.events.add(report.events)
        metrics.voids.add(report.voids.count)
        for void in report.voids.prefix(10) {
            journal.warning(
                "void record",
                ["partition": "\(identity.partition)", "seq": "\(void.seq)", "reason": void.reason]
            )
        }
    }

    // MARK: When something fails

    private func recover(from error: any Error) {
        var waitMs: Int32 = 1_000
        let problem: SnapshotError
        switch error {
        case let error as SnapshotFile.Unusable:
            problem = SnapshotError(.nodeBehind, "the snapshot's file could not be used and is made anew")
            waitMs = putAside(error.reason) ? 0 : 1_000
        case let error as SQLiteError where error.kind == .corrupt || error.kind == .notADatabase:
            problem = SnapshotError(.nodeBehind, "the snapshot's file was damaged and is made anew")
            waitMs = putAside(error.description) ? 0 : 1_000
        case let error as SQLiteError:
            problem = SnapshotError(.nodeBehind, "the snapshot cannot be written: \(error)")
        case let error as LogError:
            problem = SnapshotError(error.code, error.message)
        case let error as ReelError:
            problem = SnapshotError(.nodeBehind, "the snapshot's file does not fit together and is made anew")
            waitMs = putAside(error.message) ? 0 : 1_000
        case PartitionFolder.Stop.unknownBarrier(let seq):
            problem = SnapshotError(
                .nodeBehind,
                "found a barrier at seq \(seq) that this version does not know; run a newer one"
            )
            waitMs = 10_000
        case PartitionFolder.Stop.hole(let found, let expected):
            problem = SnapshotError(.nodeBehind, "the log went on at seq \(found), expected \(expected)")
        default:
            problem = SnapshotError(.internal, "\(error)")
        }
        let isNews = status.withLock { status in
            defer { status.problem = problem }
            return status.problem != problem
        }
        if isNews {
            journal.error(
                "folding stopped",
                ["partition": "\(identity.partition)", "code": problem.code.rawValue, "detail": problem.message]
            )
        }
        if waitMs > 0 { wake.wait(ms: waitMs) }
    }

    /// Renames the file and its WAL, so that nothing is mixed and nothing is lost.
    private func putAside(_ reason: String) -> Bool {
        var number = 0
        while access("\(path).aside-\(number)", F_OK) == 0 { number += 1 }
        for suffix in ["-wal", "-shm", ""] where access(path + suffix, F_OK) == 0 {
            guard rename(path + suffix, "\(path).aside-\(number)\(suffix)") == 0 else {
                journal.error("cannot put a file aside", ["file": path, "detail": String(cString: strerror(errno))])
                return false
            }
        }
        status.withLock { $0.seq = .none }
        journal.warning("file put aside", ["file": path, "as": "\(path).aside-\(number)", "reason": reason])
        return true
    }
}
