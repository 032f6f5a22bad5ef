internal import Glibc
internal import ReelCore
internal import Synchronization

/// Runs all tails of a log's file. What this process commits is handed to the tails that stand there as it is, by the
/// thread that has committed it where it is little and no sink has to wait; all else is read from the file, on a thread
/// that sleeps while nothing is written.
final class LogReader: Sendable {
    private struct State {
        /// Why records may be missing from the file, as of the last look.
        var doubt: FileDoubt?
        var tails: [TailHandle] = []
        /// What was committed here and not given to the tails yet; nil: some of it was dropped.
        var committed: [RecordBatch]? = []
        var isClosed = false
    }

    private let file: LogFile
    private let bell: WakeUp
    private let watch: CommitNotifications?
    private let state = Mutex(State())
    /// Held by who delivers.
    private let giving = Mutex(())
    private let thread = Mutex<LogThread?>(nil)

    /// How often the file is looked at, should a bell be lost, and checked to be the same; and where there is no bell.
    private static let netMs: Int32 = 1000
    private static let pollMs: Int32 = 10
    private static let batchBytes = 1 << 20
    /// A thread that falls behind by more rows reads them from the file.
    private static let committedMax = 64
    /// Who has committed more has other things to do: others wait for their commit.
    private static let atOnceRecords = 64
    private static let atOnceBytes = 64 << 10

    /// A reader of the file that hears of others' commits by `watch`. The number of inotify instances of a user is
    /// small; without one the file is looked at more often.
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

    /// Why records may be missing from the file. While a tail runs it is looked at again and again.
    var doubt: FileDoubt? { state.withLock { $0.doubt } }

    func start(_ tail: TailHandle) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.tails.append(tail) }
            return state.isClosed
        }
        if isClosed { tail.fail(.closed) } else { bell.ring() }
    }

    /// Takes what was committed here, a batch for each row. They are made only if there is somebody who reads.
    func take(_ batches: () -> [RecordBatch]) {
        guard state.withLock({ !$0.tails.isEmpty }) else { return }
        let batches = batches()
        if giveAtOnce(batches) { return }
        state.withLock { state in
            if (state.committed?.count ?? 0) > Self.committedMax { state.committed = nil }
            state.committed?.append(contentsOf: batches)
        }
        bell.ring()
    }

    /// Gives the tails what was just committed, on the thread that has committed it: it is there one thread sooner.
    /// False if that is left to the reader's thread: it is at it, or a tail has not come so far, or may have to wait.
    private func giveAtOnce(_ batches: [RecordBatch]) -> Bool {
        let entries = batches.lazy.flatMap(\.entries)
        guard entries.count <= Self.atOnceRecords else { return false }
        guard entries.reduce(0, { $0 + $1.byteCount }) <= Self.atOnceBytes else { return false }
        return giving.withLockIfAvailable { _ in
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
            giving.withLock { _ in
                let isAll = give(tails)
                let isCheckDue = checkDue <= .now
                // Without a watch, others may have committed as well.
                if isOwnBell, isAll, !begins, watch != nil, !isCheckDue { return }
                do throws(LogError) {
                    if isCheckDue {
                        try checkTheFile(rows, tails)
                        checkDue = .now + .milliseconds(Int(Self.netMs))
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

    /// Waits for a bell. Whether it was that of this process alone, which has committed or has something to say.
    private func wait(hasTails: Bool) -> Bool {
        let time = !hasTails ? -1 : watch == nil ? Self.pollMs : Self.netMs
        var waiting = [pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)]
        if let watch, hasTails { waiting.append(pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)) }
        let count = poll(&waiting, nfds_t(waiting.count), time)
        if waiting[0].revents != 0 { bell.silence() }
        guard waiting.count > 1, waiting[1].revents != 0 else { return count != 0 }
        watch?.silence()
        return false
    }

    /// Gives the tails what was committed here; false if the file has more for one of them, or may have.
    private func give(_ tails: [TailHandle]) -> Bool {
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

    /// What no commit says: the file is another one, or an older state of itself.
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

    /// Gives each tail its next batch; false if there was none for any.
    private func deliver(_ rows: RowReader, _ tails: [TailHandle]) -> Bool {
        var delivered = false
        // Tails that stand at the same place share a batch.
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
