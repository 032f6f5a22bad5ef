public import ReelCore

extension RecordBatch {
    /// Checks the witnesses of a batch, to find a log that was rolled back and written again. The witness of a record
    /// says which record its gateway had read last. If this reader has read another record at that seq, it has read
    /// another history.
    ///
    /// Only the first and the last record are checked. A rewritten history stays wrong from its first record on, so the
    /// next batch reveals it.
    ///
    /// - Parameters:
    ///   - entries: the indexes of the records that may be checked.
    ///   - isBelieved: returns true if the witness of a record is believed. A void record is not, because any program
    ///     with access to the log may have written it.
    ///   - record: returns a record before this batch that the reader has read; nil: it is no longer remembered.
    /// - Returns: The highest seq at which a witness agreed; −1: none did.
    /// - Throws: `diverged` if the batch belongs to another history. The error names no seq.
    public func checkWitnesses(
        in entries: Range<Int>,
        isBelieved: (Int) -> Bool,
        record: (Seq) -> Witness?
    ) throws(LogError) -> Seq {
        guard let first = entries.first(where: isBelieved) else { return .none }
        let last = entries.last(where: isBelieved) ?? first
        let agreed = try check(entry: first, record)
        return last == first ? agreed : max(agreed, try check(entry: last, record))
    }

    /// Returns the seq of the entry's witness if it agrees; −1 if there is no witness, or its record is no longer
    /// remembered.
    private func check(entry index: Int, _ record: (Seq) -> Witness?) throws(LogError) -> Seq {
        let entry = entries[index]
        guard let witness = entry.witness else { return .none }
        guard witness.seq < entry.seq else { throw diverged(entry, "had read seq \(witness.seq) already") }
        guard let known = self.entry(at: witness.seq).map(self.witness) ?? record(witness.seq) else { return .none }
        guard known == witness else { throw diverged(entry, "had read another record at seq \(witness.seq)") }
        return witness.seq
    }

    private func diverged(_ entry: Entry, _ found: String) -> LogError {
        LogError(
            .diverged,
            "partition \(partition) was rolled back and written again: the record at seq \(entry.seq) was handed over"
                + " by one who \(found)"
        )
    }
}
