// Who ended in peace has nothing under way, and has reached what was acked a while before.
extension CrossHistoryChecks {
    /// What was acked so long before a reader's end must have reached it, in milliseconds.
    private static let patienceMs: Int64 = 5_000

    /// By epoch and stream: when which seq was the highest that had been acked, by time.
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
            isBehind(result, history, heads, by: endWall - Self.patienceMs, &findings)
            isInFormerEpoch(result, history, heads, by: endWall - Self.patienceMs, &findings)
            wasToldNothing(result, history, heads, by: endWall - Self.patienceMs, &findings)
        }
    }

    /// A reader is held against the epoch in which it ended: of those before it need not have seen the end, since the
    /// state with which the next one begins stands for it.
    private func isBehind(
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

    private func isInFormerEpoch(
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

    private func wasToldNothing(
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

    /// By time, each with the highest seq up to then.
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
