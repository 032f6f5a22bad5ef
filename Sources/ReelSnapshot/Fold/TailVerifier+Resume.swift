import ReelCore
import ReelLog

extension TailVerifier {
    /// The number of records before a stored position that are read again: as many as a verifier remembers.
    private static let readAgain: Seq = 1_024

    /// Returns a verifier for a reader that continues at a stored position. It reads the records before the position
    /// again, so that it knows the same records as before the restart.
    ///
    /// - Throws: `ahead_of_log` or `diverged` if the log is not the one that was folded, `truncated` if the log begins
    ///   after the position, and the errors of a read.
    static func resuming(
        _ position: StoredPosition,
        partition: Int,
        of log: any EventLog,
        _ bounds: LogBounds
    ) throws -> TailVerifier {
        let rules = PartitionRules(partition: partition, of: log.partitions, phase: position.phase)
        // Between `next` and this seq only the records of streams that wait are folded again.
        let seq = position.read - 1
        var verifier = TailVerifier(rules, next: position.read, last: position.last)
        guard bounds.first <= position.next else { throw LogError.belowTheFirst(position.next, first: bounds.first) }
        guard position.read > 0 else { return verifier }
        guard seq <= bounds.last else {
            throw LogError(
                .aheadOfLog,
                "this node has folded partition \(partition) to seq \(seq), the log ends at \(bounds.last):"
                    + " it has lost what it had",
                seq: bounds.last
            )
        }
        let last = position.last?.seq ?? seq
        // Trimmed records cannot be compared.
        guard last >= bounds.first else { return verifier }
        let from = max(bounds.first, last - readAgain)
        verifier = TailVerifier(rules, next: from)
        try log.scan(partition, from: from, to: seq) { try verifier.take($0) }
        guard verifier.last == position.last, verifier.next == position.read else {
            throw LogError(
                .diverged,
                "partition \(partition) was rolled back and written again: its record at seq \(last) is not the one"
                    + " that this node has folded",
                seq: nil
            )
        }
        return verifier
    }
}
