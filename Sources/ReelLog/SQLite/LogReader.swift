internal import Glibc
internal import ReelCore
internal import Synchronization

/// Runs all tails of a log's file on one thread, which sleeps while nothing is written.
final class LogReader: Sendable {
    private struct State {
        var tails: [RunningTail] = []
        var isClosed = false
    }

    private let file: LogFile
    private let bell: Bell
    private let watch: BellWatch?
    private let state = Mutex(State())
    private let thread = Mutex<LogThread?>(nil)

    /// How often the file is looked at, should a bell be lost; and where there is no bell.
    private static let netMs: Int32 = 1000
    private static let pollMs: Int32 = 10
    private static let batchBytes = 1 << 20

    init(_ file: LogFile) throws(LogError) {
        self.file = file
        bell = try Bell()
        // The number of inotify instances of a user is small; without one the file is looked at more often.
        watch = try? BellWatch(file.lock.path)
        nonisolated(unsafe) let rows = try RowReader(file)
        let started = try LogThread("reel-log-read") { self.work(rows) }
        thread.withLock { $0 = started }
    }

    func start(_ tail: RunningTail) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.tails.append(tail) }
            return state.isClosed
        }
        if isClosed { tail.fail(.closed) } else { bell.ring() }
    }

    /// Something was committed here. The file's bell says it to this process too, where it can be heard.
    func wake() {
        if watch == nil { bell.ring() }
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
        while true {
            let (tails, isClosed) = state.withLock { state in
                state.tails.removeAll { $0.hasEnded }
                return (state.tails, state.isClosed)
            }
            if isClosed { return }
            let woken = tails.contains { !$0.hasStarted } ? true : wait(hasTails: !tails.isEmpty)
            do throws(LogError) {
                if !woken { try checkTheFile(rows, tails) }
                let current = try rows.version()
                let isNew = current != version || tails.contains { !$0.hasStarted }
                version = current
                if isNew { while deliver(rows, tails) {} }
            } catch {
                for tail in tails { tail.fail(error) }
            }
        }
    }

    /// Waits for a bell; false if the time was up.
    private func wait(hasTails: Bool) -> Bool {
        let time = !hasTails ? -1 : watch == nil ? Self.pollMs : Self.netMs
        var waiting = [pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)]
        if let watch, hasTails { waiting.append(pollfd(fd: watch.descriptor, events: Int16(POLLIN), revents: 0)) }
        let count = poll(&waiting, nfds_t(waiting.count), time)
        bell.silence()
        if waiting.count > 1, waiting[1].revents != 0 { watch?.silence() }
        return count != 0
    }

    /// What no commit says: the file is another one, or an older state of itself.
    private func checkTheFile(_ rows: RowReader, _ tails: [RunningTail]) throws(LogError) {
        try file.checkThatItIsThere()
        for tail in tails {
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
    private func deliver(_ rows: RowReader, _ tails: [RunningTail]) -> Bool {
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

    private func start(_ tail: RunningTail, _ rows: RowReader) throws(LogError) {
        guard !tail.hasStarted else { return }
        let last = try rows.bounds(tail.partition).last
        guard tail.next <= last + 1 else { throw .beyondTheEnd(tail.next, last: last) }
        tail.hasStarted = true
    }
}
