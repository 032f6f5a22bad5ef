internal import ReelCore

// What every log says in the same words.
extension LogError {
    static let closed = LogError(.logUnavailable, "the log has been closed")

    static func noPartition(_ number: Int, of count: Int) -> LogError {
        LogError(.internal, "partition \(number) of a log with \(count) partitions")
    }

    static func belowTheFirst(_ seq: Seq, first: Seq) -> LogError {
        LogError(.truncated, "found a read from seq \(seq), the first one kept is \(first)", seq: first)
    }

    static func beyondTheEnd(_ seq: Seq, last: Seq) -> LogError {
        LogError(.aheadOfLog, "found a read from seq \(seq), the last one written is \(last)", seq: last)
    }
}
