internal import Glibc
internal import ReelCore
internal import ReelSQLite
internal import Synchronization

/// Writes a log's file. Jobs that arrive while a group is being committed form the next group: one transaction, one
/// wait for the disk.
final class LogWriter: Sendable {
    /// A job of a caller.
    enum Job: Sendable {
        case append(
            partition: Int,
            records: [LogAppend],
            done: @Sendable (Result<[Seq], LogError>) -> Void
        )
        case announce(NodeAnnouncement, done: @Sendable (Result<Void, LogError>) -> Void)
    }

    private struct Queue {
        var jobs: [Job] = []
        var isAsleep = false
        var isClosed = false
    }

    private let file: LogFile
    private let bell: WakeUp
    private let onCommit: @Sendable (_ batches: () -> [RecordBatch]) -> Void
    private let queue = Mutex(Queue())
    private let thread = Mutex<LogThread?>(nil)

    /// Starts the writer's thread.
    ///
    /// - Parameters:
    ///   - file: The log's file.
    ///   - checkpointFrames: The length of the WAL, in frames, at which it is copied back.
    ///   - onCommit: Called on the writer's thread after each commit, with a function that returns the committed
    ///     batches.
    init(
        _ file: LogFile,
        checkpointFrames: Int,
        onCommit: @escaping @Sendable (_ batches: () -> [RecordBatch]) -> Void
    ) throws(LogError) {
        self.file = file
        self.onCommit = onCommit
        bell = try WakeUp()
        // Created here, so that the opener gets its errors. From then on only the thread uses it.
        nonisolated(unsafe) let groups = try GroupCommit(file, checkpointFrames: checkpointFrames)
        let started = try LogThread("reel-log-write") { self.work(groups) }
        thread.withLock { $0 = started }
    }

    /// Queues a job. Blocks at most while another caller queues its job.
    func hand(over job: Job) {
        let (isClosed, wakes) = queue.withLock { queue in
            guard !queue.isClosed else { return (true, false) }
            queue.jobs.append(job)
            defer { queue.isAsleep = false }
            return (false, queue.isAsleep)
        }
        if isClosed { job.fail(.closed) }
        if wakes { bell.ring() }
    }

    /// Commits all queued jobs, and ends the thread.
    func close() {
        queue.withLock { $0.isClosed = true }
        bell.ring()
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
    }

    private func work(_ groups: GroupCommit) {
        var jobs: [Job] = []
        while true {
            let isClosed = queue.withLock { queue in
                swap(&queue.jobs, &jobs)
                queue.isAsleep = jobs.isEmpty
                return queue.isClosed
            }
            if jobs.isEmpty {
                guard !isClosed else { break }
                bell.wait()
                continue
            }
            commit(jobs, groups)
            jobs.removeAll(keepingCapacity: jobs.count <= 4096)
        }
        groups.close()
    }

    private func commit(_ jobs: [Job], _ groups: GroupCommit) {
        let begun = ContinuousClock.now
        var rest = jobs[...]
        var arrivals = 0
        while !rest.isEmpty {
            groups.commit(&rest) { batches in
                // Counted before the answers: writers that wait for an answer have not sent their next job yet.
                arrivals = queue.withLock { $0.isClosed ? 0 : $0.jobs.count }
                onCommit(batches)
            }
        }
        let pause = CommitPace.pause(behind: jobs.count, took: ContinuousClock.now - begun, arrivals: arrivals)
        if pause > .zero { usleep(UInt32(pause / .microseconds(1))) }
    }
}

extension LogWriter.Job {
    func fail(_ error: LogError) {
        switch self {
        case .append(_, _, let done): done(.failure(error))
        case .announce(_, let done): done(.failure(error))
        }
    }
}
