public import ReelCore

extension MemoryLog {
    /// A fault of an append.
    public enum AppendFault: Sendable {
        /// Nothing is appended, and the answer is the error.
        case fail(LogError)
        /// Nothing is appended, because the records are too large. From now on a record may have `most` bytes, key and
        /// value together.
        case tooLarge(most: Int)
        /// All records are appended, and the answer waits for `answerLate`.
        case late
        /// All records are appended, and the answer is the error.
        case appendedButFailed(LogError)
        /// All records are appended twice, and the answer has the seqs of the second time.
        case twice
        /// All records are appended, and the answer reports success without seqs.
        case withoutPlace
        /// Nothing is appended, and the answer reports success without seqs.
        case lost
    }

    /// Sets the rule that returns the fault for each append; nil: no fault. The rule gets the partition and the
    /// records. It runs inside `append` and must not call the log.
    public func onAppend(_ rule: (@Sendable (Int, [LogAppend]) -> AppendFault?)?) {
        change { $0.appendRule = rule }
    }

    /// Sends the late answers, in order.
    public func answerLate() {
        change { state in
            state.answers += state.lateAnswers
            state.lateAnswers = []
        }
    }

    /// Stops delivery to the tails of the partition until `resume`. A batch that is already being delivered still
    /// arrives.
    public func stall(_ partition: Int) {
        change { $0.partitions[partition].isStalled = true }
    }

    /// Resumes delivery to the tails of the partition.
    public func resume(_ partition: Int) {
        change { $0.partitions[partition].isStalled = false }
    }

    /// Ends the running tails of the partition with this error.
    public func breakTails(_ partition: Int, _ error: LogError) {
        let tails = change { state in
            let broken = state.tails.filter { $0.partition == partition }
            state.tails.removeAll { $0.partition == partition }
            return broken
        }
        for tail in tails { tail.fail(error) }
    }

    /// Makes every operation on the partition fail with this error, and ends its running tails; nil: ends the fault.
    public func lose(_ partition: Int, _ error: LogError?) {
        change { $0.partitions[partition].loss = error }
    }

    /// Leaves the next seq of the partition without a record, as a transaction marker does.
    public func leaveHole(_ partition: Int) {
        change { $0.partitions[partition].leaveHole() }
    }

    /// Drops all records of the partition before `seq`. A read before `seq` then fails with `truncated`.
    public func trim(_ partition: Int, before seq: Seq) {
        change { $0.partitions[partition].trim(before: seq) }
    }

    /// Drops the record `seq` of the partition and all later ones, as a broker that lost its disk does. No tail is
    /// notified, and the seqs are used again.
    public func rollBack(_ partition: Int, to seq: Seq) {
        change { $0.partitions[partition].rollBack(to: seq) }
    }

    /// Empties the log and gives it another epoch. Running tails end with `epoch_changed`.
    public func recreate(_ epoch: Epoch) {
        let tails = change { state in
            state.epoch = epoch
            state.partitions = Array(repeating: MemoryPartition(), count: partitions)
            defer { state.tails = [] }
            return state.tails
        }
        for tail in tails {
            tail.fail(LogError(.epochChanged, "the log was created again with another epoch"))
        }
    }
}
