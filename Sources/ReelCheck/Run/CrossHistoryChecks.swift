/// The checks that need all histories together, and the end of the log.
struct CrossHistoryChecks {
    let results: [HistoryWalk.Result]
    let histories: [HistoryFile]
    let evidence: LogEvidence
    /// True if faults were not healed, so that events may be stuck.
    private let isBroken: Bool

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

    /// Checks that the log has no event that was not sent, for each site with a complete history.
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

    /// Checks that acked events take effect: after their publisher is done, no acked op follows a missing one.
    private func ackedIsConsumed(_ findings: inout Findings) {
        for (result, history) in zip(results, histories) where result.isWhole && result.unacked == 0 {
            for (ack, last) in result.acked where !result.left.contains(ack.key) {
                guard let log = evidence.logs[ack.epoch] else { continue }
                let partition = log.partition(of: ack.key.stream)
                guard partition[last.seq]?.content == .gap, !partition.isPrintedAsLost(last.seq) else { continue }
                guard let isConsumed = isConsumed(last.op, of: ack.key, from: log) else {
                    findings.unjudged(
                        "whether an acked event is consumed, and the dump, or that of an epoch that follows, is not of "
                            + "all of the log, or holds a barrier that this checker does not know; add one that is, or "
                            + "check with the release that wrote it",
                        at: partition.place(last.seq)
                    )
                    continue
                }
                findings.fact(.siteOrder)
                if isConsumed || partition.isRetired(ack.key.site, in: ack.key.stream, before: last.seq) { continue }
                findings.violation(
                    .siteOrder,
                    "all that site \(ack.key.site.text.string) handed over was acked, up to op \(last.op), and no fold "
                        + "has consumed that one: an op before it is missing",
                    [history.file.quote(lineAt: last.line), partition.quote(last.seq)]
                )
            }
        }
    }

    /// Returns true if a site's op was consumed in an epoch, or in a later one that continues with its state. There the
    /// missing ops may have been sent again. Returns nil if the dumps are not sufficient.
    private func isConsumed(_ op: Int64, of key: HistoryWalk.SiteKey, from first: LogEvidence.Log) -> Bool? {
        var log = first
        var isKnown = true
        for _ in evidence.logs {
            let partition = log.partition(of: key.stream)
            if partition.isWhole, let site = partition.fold.streams[key.stream]?.sites[key.site], site.op >= op {
                return true
            }
            if !partition.isWhole || partition.isPartial || partition.foldable < .max { isKnown = false }
            guard let name = evidence.next(of: log) else { break }
            guard let next = evidence.logs[name] else { return nil }
            log = next
        }
        return isKnown ? false : nil
    }
}
