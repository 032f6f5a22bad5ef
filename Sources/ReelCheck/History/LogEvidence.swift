/// The logs of a run, by epoch, as their dumps show them.
struct LogEvidence: Sendable {
    /// One epoch.
    struct Log: Sendable {
        let epoch: UInt64
        let partitions: [LoggedPartition]

        /// The partition that a stream's events lie in.
        func partition(of stream: Text) -> LoggedPartition {
            partitions[ReelCheck.partition(of: stream.bytes, among: partitions.count)]
        }
    }

    let logs: [UInt64: Log]
    /// What was printed as lost, by the epoch that lost it.
    let losses: [UInt64: PrintedLoss]

    /// The epoch that goes on with the state of this one.
    func next(of log: Log) -> UInt64? {
        losses[log.epoch]?.new
            ?? log.partitions.lazy.compactMap { $0.fold.next }.first.flatMap { LineReader.hex64($0.bytes) }
    }

    /// Whether an epoch comes behind another one.
    func isLater(_ epoch: UInt64, than other: UInt64) -> Bool {
        var present = other
        for _ in logs {
            guard let log = logs[present], let following = next(of: log) else { return false }
            if following == epoch { return true }
            present = following
        }
        return false
    }

    /// How many records all of them have.
    var recordCount: Int64 {
        logs.values.reduce(0) { $0 + $1.partitions.reduce(0) { $0 + $1.last - $1.first + 1 - Int64($1.empty) } }
    }
}
