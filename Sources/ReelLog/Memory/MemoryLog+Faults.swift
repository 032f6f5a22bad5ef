public import ReelCore

extension MemoryLog {
    /// What goes wrong with an append.
    public enum AppendFault: Sendable {
        /// Nothing is appended, and the error is the answer.
        case fail(LogError)
        /// Nothing is appended, as too large; from now on records have so many bytes at most, key and value together.
        case tooLarge(most: Int)
        /// All is appended, and the answer waits for `answerLate`.
        case late
        /// All is appended, and the answer is the error.
        case appendedButFailed(LogError)
        /// All is appended twice, and the answer names the second place.
        case twice
        /// All is appended, and the answer says that it is in but not where.
        case withoutPlace
        /// Nothing is appended, and the answer says that it is in but not where.
        case lost
    }

    /// Asks `rule` at each append, with the partition and the records, what shall go wrong; nil: nothing. The rule runs
    /// inside `append` and must not call the log.
    public func onAppend(_ rule: (@Sendable (Int, [LogAppend]) -> AppendFault?)?) {
        change { $0.appendRule = rule }
    }

    /// Answers what was appended late, in order.
    public func answerLate() {
        change { state in
            state.answers += state.lateAnswers
            state.lateAnswers = []
        }
    }

    /// Tails of the partition deliver nothing until `resume`. A batch that is on its way still arrives.
    public func stall(_ partition: Int) {
        change { $0.partitions[partition].isStalled = true }
    }

    /// Tails of the partition go on.
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

    /// Everything that is asked of the partition fails with this error, its running tails too; nil: no longer.
    public func lose(_ partition: Int, _ error: LogError?) {
        change { $0.partitions[partition].loss = error }
    }

    /// Leaves the next seq of the partition without a record, as the marker of a transaction does.
    public func leaveHole(_ partition: Int) {
        change { $0.partitions[partition].leaveHole() }
    }

    /// Drops all records of the partition before `seq`: who reads there meets `truncated`.
    public func trim(_ partition: Int, before seq: Seq) {
        change { $0.partitions[partition].trim(before: seq) }
    }

    /// Drops the record `seq` of the partition and all behind it, as a broker that lost its disk: nobody is told, and
    /// the seqs are given again.
    public func rollBack(_ partition: Int, to seq: Seq) {
        change { $0.partitions[partition].rollBack(to: seq) }
    }

    /// Empties the log and gives it another epoch: running tails end with `epoch_changed`.
    public func recreate(_ epoch: Epoch) {
        let tails = change { state in
            state.epoch = epoch
            state.partitions = Array(repeating: MemoryPartition(), count: partitions)
            defer { state.tails = [] }
            return state.tails
        }
        for tail in tails {
            tail.fail(LogError(.epochChanged, "the log was made anew, with another epoch"))
        }
    }
}
