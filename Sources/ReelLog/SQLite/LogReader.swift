internal import Glibc
internal import ReelCore
internal import Synchronization

/// Runs all tails of a log's file.
///
/// Records that this process commits are delivered to its tails from memory. Small groups are delivered directly on the
/// writer's thread, if no sink would block. All other records are delivered on the reader's thread, from memory or from
/// the file. That thread sleeps while nothing is written.
final class LogReader: Sendable {
    private struct State {
        /// Why records may be missing from the file, as of the last check.
        var doubt: FileDoubt?
        var tails: [TailHandle] = []
        /// Batches that were committed here and not delivered yet; nil: some were dropped and must be read from the
        /// file.
        var committed: [RecordBatch]? = []
        var isClosed = false
    }

    private let file: LogFile
    private let bell: WakeUp
    private let watch: CommitNotifications?
    private let state = Mutex(State())
    /// Held by the thread that delivers.
    private let delivery = Mutex(())
    private let thread = Mutex<LogThread?>(nil)

    /// How often the file is checked for being the same, and for commits with a lost notification. `pollMs` is the
    /// interval without inotify. Both in milliseconds.
    private static let checkMs: Int32 = 1000
    private static let pollMs: Int32 = 10
    private static let batchBytes = 1 << 20
    /// How many batches may wait in memory. With more, the reader's thread reads the records from the file.
    private static let committedMax = 64
    /// Limits for delivery on the writer's thread. A larger group would delay the next commit, for which other callers
    /// wait.
    private static let directRecordsMax = 64
    private static let directBytesMax = 64 << 10

    /// Starts the reader of a file.
    ///
    /// - Parameters:
    ///   - file: The log's file.
    ///   - watch: Notifications of other processes' commits; nil: the file is polled. A user may have only a few
    ///     inotify instances.
    init(_ file: LogFile, watch: CommitNotifications?) throws(LogError) {
        self.file = file
        self.watch = watch
        bell = try WakeUp()
        nonisolated(unsafe) let rows = try RowReader(file)
        let doubt = try rows.doubt()
        state.withLock { $0.doubt = doubt }
        let started = try LogThread("reel-log-read") { self.work(rows) }
        thread.withLock { $0 = started }
    }

    /// Why records may be missing from the file. It is checked repeatedly while a tail runs.
    var doubt: FileDoubt? { state.withLock { $0.doubt } }

    func start(_ tail: TailHandle) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.tails.append(tail) }
            return state.isClosed
        }
        if isClosed { tail.fail(.closed) } else { bell.ring() }
    }

    /// Takes what was committed here, one batch for each row. `batches` is called only if there are tails.
    func take(_ batches: () -> [RecordBatch]) {
        guard state.withLock({ !$0.tails.isEmpty }) else { return }
        let batches = batches()
        if deliverDirectly(batches) { return }
        state.withLock { state in
            if (state.committed?.count ?? 0) > Self.committedMax { state.committed = nil }
            state.committed?.append(contentsOf: batches)
        }
        bell.ring()
    }

    /// Delivers committed batches to the tails on the writer's thread, which saves a thread change.
    ///
    /// Returns false if the reader's thread must deliver: it is delivering now, a tail has not read this far, or a sink
    /// may block.
    private func deliverDirectly(_ batches: [RecordBatch]) -> Bool {
        let entries = batches.lazy.flatMap(\.entries)
        guard entries.count <= Self.directRecordsMax else { return false }
        guard entries.reduce(0, { $0 + $1.byteCount }) <= Self.directBytesMax else { return false }
        return delivery.withLockIfAvailable { _ in
            var isAll = true
            for tail in state.withLock({ $0.tails }) where !tail.hasEnded {
                for batch in batches where batch.partition == tail.partition {
                    if tail.hasStarted, tail.next == batch.seqs.lowerBound, tail.hasRoom {
                        tail.deliver(batch)
                    } else {
                        isAll = false
                    }
                }
            }
            return isAll
        } ?? false
    }

    /// Ends all tails.
    func close() {
        let tails = state.withLock { state in
            state.isClosed = true
            defer { state.tails = [] }
            return state.tails
        }
        for tail in tails { tail.cancel() }
        bell.ring()
        let thread = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        thread?.join()
    }

    // MARK: The thread

    private func work(_ rows: RowReader) {
        var version: Int64 = -1
        var checkDue = ContinuousClock.now
        while true {
            let (tails, isClosed) = state.withLock { state in
                state.tails.removeAll { $0.hasEnded }
                return (state.tails, state.isClosed)
            }
            if isClosed { return }
            let begins = tails.contains { !$0.hasStarted }
            let isOwnBell = begins || wait(hasTails: !tails.isEmpty)
            delivery.withLock { _ in
                let isAll = deliverCommitted(tails)
                let isCheckDue = checkDue <= .now
                // Without a watch, another process may have committed as well.
                if isOwnBell, isAll, !begins, watch != nil, !isCheckDue { return }
                do throws(LogError) {
                    if isCheckDue {
                        try checkTheFile(rows, tails)
                        checkDue = .now + .milliseconds(Int(Self.checkMs))
                    }
                    let current = try rows.version()
                    let isNew = current != version || begins
                    version = current
                    if isNew { while deliver(rows, tails) {} }
                } catch {
                    for tail in tails { tail.fail(error) }
                }
            }
        }
    }

    /// Waits for a wake-up. Returns true if only this process has caused it, by a commit, a new tail or `close`.
    private func wait(hasTails: Bool) -> Bool {
        let time = !hasTails ? -1 : watch == nil ? Self.pollMs : Self.checkMs
        var waiting = [pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)]
        if let watch, hasTails { waiting.append(pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)) }
        let count = poll(&waiting, nfds_t(waiting.count), time)
        if waiting[0].revents != 0 { bell.silence() }
        guard waiting.count > 1, waiting[1].revents != 0 else { return count != 0 }
        watch?.silence()
        return false
    }

    /// Delivers the batches that were committed here. Returns false if the file has more for a tail, or may have.
    private func deliverCommitted(_ tails: [TailHandle]) -> Bool {
        let committed = state.withLock { state in
            defer { state.committed = [] }
            return state.committed
        }
        guard let batches = committed else { return false }
        for batch in batches {
            for tail in tails where tail.partition == batch.partition && tail.next == batch.seqs.lowerBound {
                tail.deliver(batch)
            }
        }
        return !batches.isEmpty
            && tails.allSatisfy { tail in
                !batches.contains { $0.partition == tail.partition && $0.seqs.upperBound > tail.next }
            }
    }

    /// Checks what no commit reports: that the file is the same, and that it was not rolled back.
    private func checkTheFile(_ rows: RowReader, _ tails: [TailHandle]) throws(LogError) {
        try file.checkThatItIsThere()
        let doubt = try rows.doubt()
        state.withLock { $0.doubt = doubt }
        for tail in tails where tail.hasStarted {
            let last = try rows.bounds(tail.partition).last
            guard last < tail.next - 1 else { continue }
            tail.fail(
                LogError(
                    .diverged,
                    "seq \(tail.next - 1) of partition \(tail.partition) was read, and now the log ends at"
                        + " \(last): it was rolled back",
                    seq: last
                )
            )
        }
    }

    /// Delivers the next batch to each tail. Returns false if no tail had one.
    private func deliver(_ rows: RowReader, _ tails: [TailHandle]) -> Bool {
        var delivered = false
        // Tails at the same position share a batch.
        var latest: RecordBatch?
        for tail in tails where !tail.hasEnded {
            do throws(LogError) {
                if let latest, latest.partition == tail.partition, latest.seqs.lowerBound == tail.next {
                    tail.deliver(latest)
                    continue
                }
                let batch = try rows.read(
                    tail.partition,
                    from: tail.next,
                    to: largestInteger,
                    bytes: Self.batchBytes
                )
                if batch.entries.isEmpty {
                    try start(tail, rows)
                } else {
                    tail.hasStarted = true
                    tail.deliver(batch)
                    latest = batch
                    delivered = true
                }
            } catch {
                tail.fail(error)
            }
        }
        return delivered
    }

    private func start(_ tail: TailHandle, _ rows: RowReader) throws(LogError) {
        guard !tail.hasStarted else { return }
        let last = try rows.bounds(tail.partition).last
        guard tail.next <= last + 1 else { throw .beyondTheEnd(tail.next, last: last) }
        tail.hasStarted = true
    }
}
