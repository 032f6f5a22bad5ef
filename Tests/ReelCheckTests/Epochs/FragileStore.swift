import EventLogConformance
import ReelCore
import ReelLog
import Synchronization

/// A store of logs in memory whose process can be killed: from a chosen step on, every step fails until `revive` is
/// called.
final class FragileStore: LogStore {
    /// The fate of the step at which the process dies.
    enum Death: CaseIterable, Sendable {
        /// The step is not executed.
        case before
        /// The step is executed, but it throws as if the process had died.
        case behind
    }

    private struct State {
        var logs: [Epoch: MemoryLog] = [:]
        var current: CurrentLog?
        /// The announcements of nodes, in one table for all epochs.
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

    /// The number of steps since the last call of `die`.
    var steps: Int { state.withLock { $0.steps } }

    /// Kills the process at a step, counted from now.
    func die(atStep step: Int, _ death: Death) {
        state.withLock { state in
            state.steps = 0
            state.death = (step, death)
        }
    }

    /// Starts another process that uses the same logs.
    func revive() {
        state.withLock { state in
            state.death = nil
            state.isDead = false
        }
    }

    /// Returns the log without injected faults.
    func log(_ epoch: Epoch) -> MemoryLog? { state.withLock { $0.logs[epoch] } }

    /// Returns the current log without injected faults.
    func currentLog() throws -> MemoryLog {
        guard let current = try current(), let log = log(current.epoch) else { throw Self.died }
        return log
    }

    /// Removes the name of the current log.
    func forget() { state.withLock { $0.current = nil } }

    /// Removes a log.
    func lose(_ epoch: Epoch) { state.withLock { $0.logs[epoch] = nil } }

    /// Makes the log drop the last seed of the next append of seeds, and report that append as successful.
    func loseSeed() { state.withLock { $0.losesSeed = true } }

    /// Makes the read after the next `count` reads return an empty batch, as a lagging broker does.
    func lag(afterReads count: Int) { state.withLock { $0.readsToEmpty = count } }

    /// True if the read that returns the empty batch is still to come.
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

    /// Runs a step that changes something, unless the process is dead.
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

/// A log of a `FragileStore` with its injected faults.
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
