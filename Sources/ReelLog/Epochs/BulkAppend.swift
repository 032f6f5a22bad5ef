internal import ReelCore
internal import Synchronization

/// Appends many records to a log, in order per partition, and waits for the answers. Blocks while more than 8 MiB are
/// in flight.
final class BulkAppend {
    private struct State {
        var inFlight = 0
        var failure: LogError?
    }

    /// The state that the log's answers change, on a thread of the log.
    private final class Shared: Sendable {
        let state = Mutex(State())
        let bell: WakeUp

        init() throws(LogError) { bell = try WakeUp() }

        /// Waits until fewer than `bytes` bytes are in flight. Throws the error of a failed append.
        func wait(below bytes: Int) throws(LogError) {
            while true {
                let (inFlight, failure) = state.withLock { ($0.inFlight, $0.failure) }
                if let failure { throw failure }
                if inFlight < bytes { return }
                bell.wait()
            }
        }
    }

    private static let batchBytes = 256 << 10
    private static let inFlightMax = 8 << 20

    private let log: any EventLog
    private var batches: [(records: [LogAppend], bytes: Int)]
    private let shared: Shared

    init(_ log: any EventLog) throws(LogError) {
        self.log = log
        batches = Array(repeating: ([], 0), count: log.partitions)
        shared = try Shared()
    }

    /// Appends a record. Throws the error of an earlier append.
    func add(_ record: LogAppend, to partition: Int) throws(LogError) {
        batches[partition].records.append(record)
        batches[partition].bytes += record.key.count + record.value.count
        if batches[partition].bytes >= Self.batchBytes { try hand(over: partition) }
    }

    /// Appends what is left, and waits until all of it is in the log. Throws the error of a failed append; the other
    /// records may be in the log or not.
    func finish() throws(LogError) {
        for partition in batches.indices where !batches[partition].records.isEmpty { try hand(over: partition) }
        try shared.wait(below: 1)
    }

    private func hand(over partition: Int) throws(LogError) {
        let (records, bytes) = batches[partition]
        batches[partition] = ([], 0)
        try shared.wait(below: Self.inFlightMax)
        shared.state.withLock { $0.inFlight += bytes }
        log.append(records, to: partition) { [shared] result in
            shared.state.withLock { state in
                state.inFlight -= bytes
                if case .failure(let error) = result { state.failure = state.failure ?? error }
            }
            shared.bell.ring()
        }
    }
}
