public import ReelCore
internal import Synchronization

/// A log in memory for unit tests. It can simulate faults (`MemoryLog+Faults`).
public final class MemoryLog: EventLog {
    /// P, the number of partitions.
    public let partitions: Int
    let state: Mutex<State>
    private let bell: WakeUp
    private let worker: Mutex<LogThread?>

    struct State {
        var epoch: Epoch
        var partitions: [MemoryPartition]
        var tails: [TailHandle] = []
        var nodes: [String: NodeAnnouncement] = [:]
        /// Answers that the worker has to send.
        var answers: [@Sendable () -> Void] = []
        /// Answers that wait for `answerLate`.
        var lateAnswers: [@Sendable () -> Void] = []
        var recordBytesMax = Int.max
        var appendRule: (@Sendable (Int, [LogAppend]) -> AppendFault?)?
        var isClosed = false
    }

    /// Creates an empty log.
    public init(epoch: Epoch = Epoch(0x9f00_0000_0000_0001), partitions: Int = 4) throws(LogError) {
        self.partitions = partitions
        state = Mutex(State(epoch: epoch, partitions: Array(repeating: MemoryPartition(), count: partitions)))
        bell = try WakeUp()
        worker = Mutex(nil)
        // The thread keeps the log alive until `close`.
        let thread = try LogThread("reel-log") { self.work() }
        worker.withLock { $0 = thread }
    }

    /// The epoch of this log.
    public var epoch: Epoch { state.withLock { $0.epoch } }

    /// The largest record that the log accepts, in bytes; see `AppendFault.tooLarge`.
    public var recordBytesMax: Int { state.withLock { $0.recordBytesMax } }

    /// Returns the first and the last seq of a partition.
    public func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        try change { state throws(LogError) in try state.partition(partition).bounds }
    }

    /// Appends records; see `EventLog.append`.
    public func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        state.withLock { state in
            do throws(LogError) {
                _ = try state.partition(partition)
                let fault = state.appendRule?(partition, records)
                if case .fail(let error) = fault { throw error }
                if case .tooLarge(let most) = fault {
                    state.recordBytesMax = most
                    throw LogError(.tooLarge, "found a record that is too large, at most \(most) bytes fit")
                }
                var seqs = records.map { _ in Seq.none }
                if case .lost = fault {} else { seqs = state.partitions[partition].append(records) }
                if case .twice = fault { seqs = state.partitions[partition].append(records) }
                if case .withoutPlace = fault { seqs = seqs.map { _ in .none } }
                let result: Result<[Seq], LogError> =
                    if case .appendedButFailed(let error) = fault { .failure(error) } else { .success(seqs) }
                if case .late = fault {
                    state.lateAnswers.append { done(result) }
                } else {
                    state.answers.append { done(result) }
                }
            } catch {
                if state.isClosed {
                    done(.failure(error))
                } else {
                    state.answers.append { done(.failure(error)) }
                }
            }
        }
        bell.ring()
    }

    /// Reads a partition as the log grows; see `EventLog.tail`.
    public func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        let tail = TailHandle(partition: partition, from: from, sink: sink)
        change { $0.tails.append(tail) }
        return tail
    }

    /// Reads a range; see `EventLog.read`.
    public func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try state.withLock { state throws(LogError) in
            try state.partition(partition).batch(partition, from: from, to: to, bytes: bytes)
        }
    }

    /// Announces a node to the others.
    public func announce(_ node: NodeAnnouncement) throws(LogError) {
        state.withLock { $0.nodes[node.id] = node }
    }

    /// Returns the recent announcements of the nodes.
    public func nodes() throws(LogError) -> [NodeAnnouncement] {
        let oldest = NodeAnnouncement.oldestMs()
        return state.withLock { $0.nodes.values.filter { $0.atMs >= oldest }.sorted { $0.id < $1.id } }
    }

    /// Ends the tails and sends all open answers.
    public func close() {
        change { state in
            state.isClosed = true
            state.answers += state.lateAnswers
            state.lateAnswers = []
        }
        let thread = worker.withLock { worker in
            defer { worker = nil }
            return worker
        }
        thread?.join()
    }

    /// Changes the state, and wakes the worker.
    func change<R, E>(_ body: (inout sending State) throws(E) -> sending R) throws(E) -> sending R {
        defer { bell.ring() }
        return try state.withLock(body)
    }

    // MARK: The worker

    private func work() {
        while true {
            bell.wait()
            while speak() {}
            if state.withLock({ $0.isClosed && $0.answers.isEmpty }) { break }
        }
        let tails = state.withLock { state in
            defer { state.tails = [] }
            return state.tails
        }
        for tail in tails { tail.cancel() }
    }

    /// Sends pending answers and batches. Returns false if there were none.
    private func speak() -> Bool {
        let (answers, tails, isClosed) = state.withLock { state in
            defer { state.answers = [] }
            state.tails.removeAll { $0.hasEnded }
            return (state.answers, state.tails, state.isClosed)
        }
        for answer in answers { answer() }
        var spoke = !answers.isEmpty
        for tail in tails where !isClosed {
            if deliver(tail) { spoke = true }
        }
        return spoke
    }

    private func deliver(_ tail: TailHandle) -> Bool {
        let found: Result<RecordBatch, LogError> = state.withLock { state in
            do throws(LogError) {
                let partition = try state.partition(tail.partition)
                guard !partition.isStalled else { return .success(RecordBatch(partition: 0, empty: 0..<0)) }
                guard tail.hasStarted || tail.next <= partition.end else {
                    throw .beyondTheEnd(tail.next, last: partition.end - 1)
                }
                tail.hasStarted = true
                return .success(
                    try partition.batch(tail.partition, from: tail.next, to: largestInteger, bytes: 1 << 20)
                )
            } catch {
                return .failure(error)
            }
        }
        switch found {
        case .success(let batch) where batch.seqs.isEmpty:
            return false
        case .success(let batch):
            tail.deliver(batch)
            return true
        case .failure(let error):
            tail.fail(error)
            return true
        }
    }
}

extension MemoryLog.State {
    /// Returns the partition of this number. Throws if there is none, if the log is closed, or if the partition is
    /// lost.
    func partition(_ number: Int) throws(LogError) -> MemoryPartition {
        guard !isClosed else { throw .closed }
        guard partitions.indices.contains(number) else { throw .noPartition(number, of: partitions.count) }
        if let loss = partitions[number].loss { throw loss }
        return partitions[number]
    }
}
