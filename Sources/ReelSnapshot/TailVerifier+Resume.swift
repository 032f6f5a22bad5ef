import ReelCore
import ReelLog

extension TailVerifier {
    /// How many records before a stored position are read again: as many as a verifier remembers.
    private static let readAgain: Seq = 1_024

    /// A verifier for who goes on at a stored position. It reads the records before it again, so it knows what it knew.
    /// Throws `ahead_of_log` or `diverged` where the log is not the one that was folded, `truncated` where it begins
    /// behind it, and the errors of a read.
    static func resuming(
        _ position: StoredPosition,
        partition: Int,
        of log: any EventLog,
        _ bounds: LogBounds
    ) throws -> TailVerifier {
        let rules = PartitionRules(partition: partition, of: log.partitions, phase: position.phase)
        // Between `next` and here only the streams that wait are read again.
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
        // What was trimmed cannot be compared.
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
