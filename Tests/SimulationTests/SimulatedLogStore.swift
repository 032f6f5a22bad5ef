import ReelClient
import ReelCore

@testable import ReelLog

/// The logs of the deployment, one per epoch. Nodes start with the current log.
final class SimulatedLogStore: LogStore, @unchecked Sendable {
    /// All logs by their numbers: former ones, the current one, and the next one while it is created.
    private(set) var logs: [SimulatedLog] = []
    private var currentNumber = 0
    /// The faults of every log.
    var faults = SimulatedLog.Faults() {
        didSet { for log in logs { log.faults = faults } }
    }
    private let time: VirtualTime
    /// The process that opens logs here. It blocks until they have answered.
    private let process: SimulatedProcess

    init(_ time: VirtualTime, partitions: Int, epoch: Epoch, seed: UInt64) {
        self.time = time
        process = SimulatedProcess("operator", time, seed: seed)
        make(epoch, partitions: partitions)
    }

    var log: SimulatedLog { logs[currentNumber] }
    var deployment: Deployment { Deployment(beginningWith: logs[0].epoch) }
    /// True while the next log is being created.
    var isChanging: Bool { logs.count > currentNumber + 1 }

    @discardableResult
    func make(_ epoch: Epoch, partitions: Int) -> SimulatedLog {
        let log = SimulatedLog(time, number: logs.count, partitions: partitions, epoch: epoch)
        log.faults = faults
        logs.append(log)
        return log
    }

    func number(of epoch: Epoch) -> Int? { logs.firstIndex { $0.epoch == epoch } }

    func current() throws(LogError) -> CurrentLog? {
        CurrentLog(
            epoch: log.epoch,
            partitions: log.partitions.count,
            number: currentNumber,
            deployment: deployment
        )
    }

    func create(_ epoch: Epoch, partitions: Int) throws(LogError) {
        if number(of: epoch) == nil { make(epoch, partitions: partitions) }
    }

    func open(_ epoch: Epoch) throws(LogError) -> any EventLog {
        guard let number = number(of: epoch) else { throw LogError(.damaged, "there is no log \(epoch)") }
        return LogHandle(logs[number], process, isPatient: true)
    }

    func advance(to next: CurrentLog) throws(LogError) {
        guard next.number == currentNumber + 1 else { throw LogError(.conflict, "found another number") }
        currentNumber = next.number
    }

    func close() {}
}

/// The committed state of a snapshot node, for an operator whose log was trimmed.
struct SimulatedArchive: StateArchive, @unchecked Sendable {
    let log: SimulatedLog
    let folds: [PartitionFold]

    var epoch: Epoch { log.epoch }
    var partitions: Int { log.partitions.count }
    var number: Int? { log.number }
    var deployment: Deployment? { nil }

    func state(of partition: Int) throws -> ArchivedState? {
        let fold = folds[partition]
        return fold.isInsideSeeds(of: log) ? nil : ArchivedState(fold: fold, last: nil)
    }
}

extension PartitionFold {
    /// True if no snapshot exists yet: the state is within the seeds, or before them in a log that follows another one.
    func isInsideSeeds(of log: SimulatedLog) -> Bool { phase == .seeds && (next > 0 || log.number > 0) }
}
