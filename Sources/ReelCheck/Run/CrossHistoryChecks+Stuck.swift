// Checks that a party with an orderly end has no event under way, and has reached every event that was acked some time
// before its end.
extension CrossHistoryChecks {
    /// The time in milliseconds within which an acked event must reach a reader. An event acked earlier than this
    /// before a reader's end must have reached it.
    private static let patienceMs: Int64 = 5_000

    /// By epoch and stream: the highest acked seq at each time, ordered by time.
    private typealias Heads = [HistoryWalk.StreamKey: [(wall: Int64, seq: Int64)]]

    func nothingStuck(_ findings: inout Findings) {
        var heads: Heads = [:]
        for result in results { heads.merge(result.ackedHeads) { $0 + $1 } }
        for (key, acked) in heads { heads[key] = Self.rising(acked) }
        for (result, history) in zip(results, histories) {
            guard result.isWhole, let endWall = result.endWall else { continue }
            findings.fact(.stuck)
            if result.unacked > 0 {
                findings.violation(
                    .stuck,
                    "\(result.who) ended with \(result.unacked) events that were never acked",
                    [history.file.quote(lineAt: result.endLine)]
                )
            }
            checkReached(result, history, heads, by: endWall - Self.patienceMs, &findings)
            checkEpoch(result, history, heads, by: endWall - Self.patienceMs, &findings)
            checkUnreached(result, history, heads, by: endWall - Self.patienceMs, &findings)
        }
    }

    /// Compares a reader with the epoch in which it ended. The reader need not have seen the end of earlier epochs,
    /// because the initial state of the next epoch replaces it.
    private func checkReached(
        _ result: HistoryWalk.Result,
        _ history: HistoryFile,
        _ heads: Heads,
        by wall: Int64,
        _ findings: inout Findings
    ) {
        for (stream, reached) in result.reached {
            let key = HistoryWalk.StreamKey(epoch: reached.epoch, stream: stream)
            guard let due = Self.seq(heads[key] ?? [], by: wall) else { continue }
            findings.fact(.stuck)
            guard reached.seq < due else { continue }
            findings.violation(
                .stuck,
                "\(result.who) ended at seq \(reached.seq) of stream \(stream.string), and seq \(due) had been acked "
                    + "more than \(Self.patienceMs / 1_000) s before",
                [history.file.quote(lineAt: reached.line)]
            )
        }
    }

    private func checkEpoch(
        _ result: HistoryWalk.Result,
        _ history: HistoryFile,
        _ heads: Heads,
        by wall: Int64,
        _ findings: inout Findings
    ) {
        for (stream, reached) in result.reached where evidence.logs.count > 1 {
            let later = heads.contains { key, acked in
                key.stream == stream && evidence.isLater(key.epoch, than: reached.epoch)
                    && Self.seq(acked, by: wall) != nil
            }
            guard later else { continue }
            findings.fact(.stuck)
            findings.violation(
                .stuck,
                "\(result.who) ended in epoch \(hex(reached.epoch, digits: 16)) of stream \(stream.string), and in a "
                    + "later one an event had been acked more than \(Self.patienceMs / 1_000) s before",
                [history.file.quote(lineAt: reached.line)]
            )
        }
    }

    private func checkUnreached(
        _ result: HistoryWalk.Result,
        _ history: HistoryFile,
        _ heads: Heads,
        by wall: Int64,
        _ findings: inout Findings
    ) {
        for (stream, line) in result.unreached {
            let of = heads.filter { $0.key.stream == stream }.values
            guard let due = of.compactMap({ Self.seq($0, by: wall) }).max() else { continue }
            findings.fact(.stuck)
            findings.violation(
                .stuck,
                "\(result.who) ended without a word of stream \(stream.string), and seq \(due) had been acked more "
                    + "than \(Self.patienceMs / 1_000) s before",
                [history.file.quote(lineAt: line)]
            )
        }
    }

    /// Returns the acks by time, each with the highest seq up to that time.
    private static func rising(_ acked: [(wall: Int64, seq: Int64)]) -> [(wall: Int64, seq: Int64)] {
        var highest: Int64 = -1
        return acked.sorted { $0.wall < $1.wall }.map { acked in
            highest = max(highest, acked.seq)
            return (acked.wall, highest)
        }
    }

    private static func seq(_ rising: [(wall: Int64, seq: Int64)], by wall: Int64) -> Int64? {
        var (low, high) = (0, rising.count)
        while low < high {
            let middle = (low + high) / 2
            if rising[middle].wall <= wall { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? rising[low - 1].seq : nil
    }
}
