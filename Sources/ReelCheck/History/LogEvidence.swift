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

    /// How many records all of them have.
    var recordCount: Int64 {
        logs.values.reduce(0) { $0 + $1.partitions.reduce(0) { $0 + $1.last - $1.first + 1 } }
    }
}
