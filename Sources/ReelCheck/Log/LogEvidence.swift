/// The logs of a run, by epoch, as their dumps show them.
struct LogEvidence: Sendable {
    /// The log of one epoch.
    struct Log: Sendable {
        let epoch: UInt64
        let partitions: [LoggedPartition]

        /// Returns the partition that contains the events of a stream.
        func partition(of stream: Text) -> LoggedPartition {
            partitions[ReelCheck.partition(of: stream.bytes, among: partitions.count)]
        }
    }

    let logs: [UInt64: Log]
    /// The printed losses, by the epoch that lost records.
    let losses: [UInt64: PrintedLoss]

    /// Returns the epoch that continues with the state of this one; nil if there is none.
    func next(of log: Log) -> UInt64? {
        losses[log.epoch]?.new
            ?? log.partitions.lazy.compactMap { $0.fold.next }.first.flatMap { LineReader.hex64($0.bytes) }
    }

    /// True if `epoch` follows `other`, directly or not.
    func isLater(_ epoch: UInt64, than other: UInt64) -> Bool {
        var present = other
        for _ in logs {
            guard let log = logs[present], let following = next(of: log) else { return false }
            if following == epoch { return true }
            present = following
        }
        return false
    }

    /// The number of records of all logs.
    var recordCount: Int64 {
        logs.values.reduce(0) { $0 + $1.partitions.reduce(0) { $0 + $1.last - $1.first + 1 - Int64($1.empty) } }
    }
}
