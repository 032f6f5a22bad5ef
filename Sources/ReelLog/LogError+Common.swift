package import ReelCore

// The errors that all logs share.
extension LogError {
    package static let closed = LogError(.logUnavailable, "the log has been closed")

    package static func noPartition(_ number: Int, of count: Int) -> LogError {
        LogError(.internal, "partition \(number) of a log with \(count) partitions")
    }

    package static func belowTheFirst(_ seq: Seq, first: Seq) -> LogError {
        LogError(.truncated, "found a read from seq \(seq), the first one kept is \(first)", seq: first)
    }

    package static func beyondTheEnd(_ seq: Seq, last: Seq) -> LogError {
        LogError(.aheadOfLog, "found a read from seq \(seq), the last one written is \(last)", seq: last)
    }
}
