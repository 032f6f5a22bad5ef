import EventLogConformance
import ReelCore
import ReelLog
import Synchronization

/// Logs in memory, one epoch after the other, whose user dies: at a chosen step nothing works any more, until `revive`.
final class FragileStore: LogStore {
    /// What became of the step at which the user died.
    enum Death: CaseIterable, Sendable {
        /// It was not done.
        case before
        /// It was done, and nobody heard of it.
        case behind
    }

    private struct State {
        var logs: [Epoch: MemoryLog] = [:]
        var current: CurrentLog?
        /// One table for all epochs.
        var nodes: [NodeAnnouncement] = []
        var steps = 0
        var death: (step: Int, Death)?
        var isDead = false
        var losesSeed = false
        var readsToEmpty: Int?
    }

    private let state = Mutex(State())

    static let died = LogError(.logUnavailable, "the process has died")

    deinit {
        for log in state.withLock({ $0.logs.values.map(\.self) }) { log.close() }
    }

    /// How many steps were taken.
    var steps: Int { state.withLock { $0.steps } }

    /// From now on, the user dies at this step.
    func die(atStep step: Int, _ death: Death) {
        state.withLock { state in
            state.steps = 0
            state.death = (step, death)
        }
    }

    /// Another process goes on.
    func revive() {
        state.withLock { state in
            state.death = nil
            state.isDead = false
        }
    }

    /// A log as it is, for the test.
    func log(_ epoch: Epoch) -> MemoryLog? { state.withLock { $0.logs[epoch] } }

    /// The current log as it is, for the test.
    func currentLog() throws -> MemoryLog {
        guard let current = try current(), let log = log(current.epoch) else { throw Self.died }
        return log
    }

    /// Forgets which log is the current one.
    func forget() { state.withLock { $0.current = nil } }

    /// Loses a log.
    func lose(_ epoch: Epoch) { state.withLock { $0.logs[epoch] = nil } }

    /// Of the next seeds that are written, the log keeps all but the last, and says that it has all.
    func loseSeed() { state.withLock { $0.losesSeed = true } }

    /// The read behind the next `count` answers with nothing, as a broker does that lags behind the others.
    func lag(afterReads count: Int) { state.withLock { $0.readsToEmpty = count } }

    /// The read that answers with nothing has not come yet.
    var lagIsToCome: Bool { state.withLock { $0.readsToEmpty ?? -1 >= 0 } }

    fileprivate var nodes: [NodeAnnouncement] { state.withLock { $0.nodes } }
    fileprivate func announce(_ node: NodeAnnouncement) { state.withLock { $0.nodes.append(node) } }

    fileprivate var lags: Bool {
        state.withLock { state in
            guard let left = state.readsToEmpty else { return false }
            state.readsToEmpty = left - 1
            return left == 0
        }
    }

    fileprivate func losesLast(of records: [LogAppend]) -> Bool {
        guard records.last?.value.starts(with: Array(#"{"line":"#.utf8)) == true else { return false }
        return state.withLock { state in
            defer { state.losesSeed = false }
            return state.losesSeed
        }
    }

    /// Takes a step that changes something.
    fileprivate func step(_ body: () throws(LogError) -> Void) throws(LogError) {
        let (isDead, dies) = state.withLock { state -> (Bool, Death?) in
            defer { state.steps += 1 }
            guard !state.isDead else { return (true, nil) }
            guard let death = state.death, death.step == state.steps else { return (false, nil) }
            state.isDead = true
            return (false, death.1)
        }
        guard !isDead, dies != .before else { throw Self.died }
        try body()
        if dies == .behind { throw Self.died }
    }

    func current() throws(LogError) -> CurrentLog? { state.withLock { $0.current } }

    func create(_ epoch: Epoch, partitions: Int) throws(LogError) {
        try step { () throws(LogError) in
            guard log(epoch) == nil else { return }
            let log = try MemoryLog(epoch: epoch, partitions: partitions)
            state.withLock { $0.logs[epoch] = log }
        }
    }

    func open(_ epoch: Epoch) throws(LogError) -> any EventLog {
        guard let log = log(epoch) else { throw LogError(.damaged, "there is no log \(epoch)") }
        return FragileLog(log: log, store: self)
    }

    func advance(to next: CurrentLog) throws(LogError) {
        try step { () throws(LogError) in
            let isNext = state.withLock { state in
                if let current = state.current, next.number != current.number + 1 { return false }
                state.current = next
                return true
            }
            guard isNext else { throw LogError(.conflict, "found another number") }
        }
    }

    func close() {}
}

/// A log of a `FragileStore`, as its user sees it.
private final class FragileLog: ForwardingLog {
    let log: any EventLog
    private let store: FragileStore

    init(log: any EventLog, store: FragileStore) {
        self.log = log
        self.store = store
    }

    func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        let kept = store.losesLast(of: records) ? records.dropLast() : records
        do throws(LogError) {
            try store.step { log.append(kept, to: partition, done: done) }
        } catch {
            done(.failure(error))
        }
    }

    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        if store.lags { return RecordBatch(partition: partition, empty: from..<from) }
        return try log.read(partition, from: from, to: to, bytes: bytes)
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) { store.announce(node) }
    func nodes() throws(LogError) -> [NodeAnnouncement] { store.nodes }
    func close() {}
}
