/// What only all histories together, and the log's end, can tell.
struct Assembly {
    private let results: [HistoryWalk.Result]
    private let histories: [HistoryFile]
    private let evidence: LogEvidence
    /// Faults without a heal: what hangs may hang.
    private let isBroken: Bool

    /// What was acked so long before a reader's end must have reached it, in milliseconds.
    private static let patienceMs: Int64 = 5_000

    init(_ results: [HistoryWalk.Result], _ histories: [HistoryFile], _ evidence: LogEvidence) {
        self.results = results
        self.histories = histories
        self.evidence = evidence
        isBroken = histories.contains(where: \.isBroken)
    }

    func judge(_ findings: inout Findings) {
        nothingInvented(&findings)
        ackedIsConsumed(&findings)
        if !isBroken { nothingStuck(&findings) }
    }

    /// Of a site whose history is whole, the log has nothing that was not handed over.
    private func nothingInvented(_ findings: inout Findings) {
        var sent: [HistoryWalk.SiteKey: Coverage] = [:]
        var uncertain: Set<HistoryWalk.SiteKey> = []
        for result in results {
            for (key, ops) in result.sent {
                sent[key, default: Coverage()].formUnion(ops)
                if !result.isWhole { uncertain.insert(key) }
            }
        }
        for log in evidence.logs.values {
            for partition in log.partitions {
                var (facts, invented) = (0, [(HistoryWalk.SiteKey, Int64, Int64)]())
                var leftOut: [Int64] = []
                partition.eachEvent { stream, site, op, seq in
                    let key = HistoryWalk.SiteKey(stream: stream, site: site)
                    guard let ops = sent[key], let highest = ops.last, !uncertain.contains(key) else { return }
                    facts += 1
                    if op > highest {
                        invented.append((key, op, seq))
                    } else if !ops.contains(op) {
                        leftOut.append(seq)
                    }
                }
                findings.fact(.phantom, facts)
                if let seq = leftOut.first {
                    findings.unjudged(
                        "an event of a site whose lines of sent leave it out: lines are missing; record the run again",
                        leftOut.count,
                        at: partition.place(seq)
                    )
                }
                for (key, op, seq) in invented {
                    findings.violation(
                        .phantom,
                        "the log has op \(op) of site \(key.site.text.string), which handed over none above "
                            + "\(sent[key]?.last ?? -1)",
                        [partition.quote(seq)]
                    )
                }
            }
        }
    }

    /// What was acked takes effect: once its publisher is done, no acked op is left behind a missing one.
    private func ackedIsConsumed(_ findings: inout Findings) {
        for result in results where result.isWhole && result.unacked == 0 {
            for (ack, last) in result.acked {
                guard let log = evidence.logs[ack.epoch] else { continue }
                let partition = log.partition(of: ack.key.stream)
                guard let record = partition[last.seq], record.content == .gap else { continue }
                guard partition.isWhole, !partition.isPartial, partition.foldable == .max else {
                    findings.unjudged(
                        "whether an acked event is consumed, and the dump is not of all of the log, or holds a barrier "
                            + "that this judge does not know; add one that is, or judge with the release that wrote it",
                        at: partition.place(last.seq)
                    )
                    continue
                }
                findings.fact(.siteOrder)
                let consumed = partition.fold.streams[ack.key.stream]?.sites[ack.key.site]?.op ?? -1
                guard consumed < last.op else { continue }
                let history = histories.first { $0.file.name == result.file }
                findings.violation(
                    .siteOrder,
                    "all that site \(ack.key.site.text.string) handed over was acked, up to op \(last.op), and the "
                        + "fold has consumed none above \(consumed): an op before it is missing",
                    [history?.file.quote(lineAt: last.line), partition.quote(last.seq)]
                )
            }
        }
    }

    /// Who ended in peace has nothing under way, and has reached what was acked a while before.
    private func nothingStuck(_ findings: inout Findings) {
        var heads: [HistoryWalk.StreamKey: [(wall: Int64, seq: Int64)]] = [:]
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
            for (key, reached) in result.reached {
                guard let due = Self.seq(heads[key] ?? [], by: endWall - Self.patienceMs) else { continue }
                findings.fact(.stuck)
                guard reached.seq < due else { continue }
                findings.violation(
                    .stuck,
                    "\(result.who) ended at seq \(reached.seq) of stream \(key.stream.string), and seq \(due) had been "
                        + "acked more than \(Self.patienceMs / 1_000) s before",
                    [history.file.quote(lineAt: reached.line)]
                )
            }
            for (stream, epoch) in result.lastReached where evidence.logs.count > 1 {
                let later = heads.contains { key, acked in
                    key.stream == stream && evidence.isLater(key.epoch, than: epoch)
                        && Self.seq(acked, by: endWall - Self.patienceMs) != nil
                }
                guard later else { continue }
                findings.fact(.stuck)
                findings.violation(
                    .stuck,
                    "\(result.who) ended in epoch \(hex(epoch, digits: 16)) of stream \(stream.string), and in a later "
                        + "one an event had been acked more than \(Self.patienceMs / 1_000) s before",
                    [
                        result.reached[HistoryWalk.StreamKey(epoch: epoch, stream: stream)]
                            .map { history.file.quote(lineAt: $0.line) }
                    ]
                )
            }
            for (stream, line) in result.unreached {
                let of = heads.filter { $0.key.stream == stream }.values
                guard let due = of.compactMap({ Self.seq($0, by: endWall - Self.patienceMs) }).max() else { continue }
                findings.fact(.stuck)
                findings.violation(
                    .stuck,
                    "\(result.who) ended without a word of stream \(stream.string), and seq \(due) had been acked more "
                        + "than \(Self.patienceMs / 1_000) s before",
                    [history.file.quote(lineAt: line)]
                )
            }
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
