import ReelCore

/// What a report of a stream means. Pure: the same report, the same findings.
struct StreamDiagnosis {
    let report: StreamReport
    /// The clock, milliseconds since 1970.
    let nowMs: Int64

    /// What there is to say, the worst first.
    var findings: [Finding] {
        let all = log + states + (report.site.map(site) ?? [])
        return Finding.Level.allCases.reversed().flatMap { level in all.filter { $0.level == level } }
    }

    private var log: [Finding] {
        switch report.head {
        case .failure(let failure):
            return [
                Finding(
                    .problem,
                    "stream",
                    "\(report.stream) cannot be asked for: \(failure.message)",
                    do: advice(failure)
                )
            ]
        case .success(let head):
            guard let fold = report.furthest, fold.epoch.description == head.epoch, fold.seq < head.head else {
                return []
            }
            return [
                Finding(
                    .note,
                    "stream",
                    "partition \(head.partition) ends at seq \(head.head), the state is folded up to \(fold.seq)",
                    do: "Ask again: see under lag whether that goes on."
                )
            ]
        }
    }

    // MARK: State

    private var states: [Finding] {
        var findings: [Finding] = []
        for state in report.states {
            guard case .failure(let failure) = state.fold else { continue }
            let isWrong = failure.code == .diverged || failure.code == .badFrame
            findings.append(
                Finding(
                    isWrong ? .problem : .warning,
                    "stream",
                    "snapshot node \(state.node) has no \(isWrong ? "right " : "")state of \(report.stream): "
                        + failure.message,
                    do: isWrong
                        ? "Its file is wrong: stop it, move its data folder away, start it; it folds anew from the log."
                        : advice(failure)
                )
            )
        }
        for disagreement in report.disagreements {
            findings.append(
                Finding(
                    .problem,
                    "stream",
                    "snapshot nodes hold different states: \(disagreement)",
                    do:
                        "`reel dump --stream \(report.stream) | reel fold --stream \(report.stream)` computes the "
                        + "right one; the node that has another makes its files anew: stop it, move its data folder "
                        + "away, start it."
                )
            )
        }
        if report.states.isEmpty {
            findings.append(
                Finding(
                    .warning,
                    "stream",
                    "the state of \(report.stream) was not checked: no snapshot node that answers is known",
                    do: "Name a snapshot node, or an operator's port (--admin-listen), with --url."
                )
            )
        } else if report.isPartial {
            let asked = report.states.map { "\($0.node)" }.joined(separator: ", ")
            findings.append(
                Finding(
                    .note,
                    "stream",
                    "the state of \(report.stream) was asked of \(asked) alone: who the snapshot nodes are is not"
                        + " known",
                    do: "To compare all of them, name an operator's port (--admin-listen) with --url."
                )
            )
        }
        guard var fold = report.furthest else { return findings }
        let sites = fold.sites().count
        if let finding = Finding.crowd(report.stream.description, sites: fold.liveSites, about: "stream") {
            findings.append(finding)
        }
        if sites == 0, fold.objectCount == 0 {
            // What is not folded yet may be its first event.
            let head = try? report.head.get()
            let isWhole = head.map { $0.epoch == fold.epoch.description && $0.head <= fold.seq } ?? false
            findings.append(
                Finding(
                    isWhole ? .problem : .note,
                    "stream",
                    "nobody has written \(report.stream): no event of it counts in partition \(fold.partition) up to "
                        + "seq \(fold.seq)",
                    do: "See whether its name is spelt as the devices spell it."
                )
            )
        } else if report.disagreements.isEmpty {
            let nodes = report.states.count { (try? $0.fold.get()) != nil }
            let agree =
                report.isPartial
                ? "other nodes were not asked"
                : nodes == 1 ? "one snapshot node has it" : "all \(nodes) snapshot nodes agree"
            findings.append(
                Finding(
                    .ok,
                    "stream",
                    "\(report.stream) at seq \(fold.seq) of partition \(fold.partition): digest "
                        + "\(Hex64.text(fold.digest())), \(counted(Int(clamping: fold.consumed), "event")) of "
                        + "\(counted(sites, "site")) consumed; \(agree)"
                )
            )
        }
        return findings
    }

    private func advice(_ failure: StreamVisit.Failure) -> String {
        failure.code?.adviceToAsker ?? "See whether the node runs; what is said about nodes says more."
    }

    // MARK: Site

    private func site(_ site: Site) -> [Finding] {
        guard let fold = report.furthest else { return [] }
        var findings: [Finding] = []
        if let failure = report.siteFailure {
            findings.append(
                Finding(
                    .warning,
                    "site",
                    "what the log has of \(site) cannot be asked for: \(failure.message)",
                    do: advice(failure)
                )
            )
        }
        guard let state = fold.site(site) else { return findings.isEmpty ? unknown(site, fold) : findings }
        let last = report.siteEvents.first { $0.op == state.op && $0.seq == state.seq }
        findings.append(
            Finding(
                .ok,
                "site",
                "op \(state.op) is the last consumed, at seq \(state.seq)\(last?.atMs.map(ago) ?? ""): the device can "
                    + "forget all up to it, and what it still holds begins with op \(state.op + 1)"
            )
        )
        if state.end >= 0 {
            findings.append(
                Finding(
                    .warning,
                    "site",
                    "it ended with seq \(state.end): whatever it sends now is consumed by nobody (gap)",
                    do: "The device takes a new site, and publishes there what it still holds."
                )
            )
        }
        for text in lostTexts(state.lost) {
            findings.append(Finding(.note, "site", text, do: ErrorCode.stale.entry.advice))
        }
        return findings + later(fold, after: state.op, state.end >= 0)
    }

    /// A sentence for each mark that makes splices of the site stale.
    private func lostTexts(_ lost: LostTexts) -> [String] {
        var texts = lost.fields.map {
            "its event at seq \($0.seq) was rejected and named \($0) as text: splices of that field with a lower base "
                + "are stale"
        }
        if lost.all >= 0 {
            texts.append("events up to seq \(lost.all) were rejected and had text: splices with a lower base are stale")
        }
        return texts
    }

    private func unknown(_ site: Site, _ fold: Fold) -> [Finding] {
        let isFolded = report.siteEvents.isEmpty || report.siteEvents.contains { $0.seq <= fold.seq }
        guard isFolded else { return later(fold, after: -1, false) }
        if let begin = report.siteEvents.first, begin.op == 0, begin.seq < max(fold.horizon, fold.retired) {
            return [forgotten(site, begin.seq, fold)]
        }
        let first = report.siteEvents.first.map {
            "the first in the log is op \($0.op) at seq \($0.seq)" + ($0.op == 0 ? "" : ", not op 0")
        }
        let start = (try? report.head.get().first) ?? 0
        let begin = start > 0 ? ", which begins at seq \(start)" : ""
        return [
            Finding(
                .problem,
                "site",
                "no event of \(site) was consumed here: \(first ?? "the log has none of it\(begin)")",
                do: first == nil
                    ? "See what the device is told: its nacks, and whether it speaks to this cluster and this stream."
                    : "The device sends its events again from op 0; if it cannot, it takes a new site."
            )
        ]
    }

    private func forgotten(_ site: Site, _ first: Seq, _ fold: Fold) -> Finding {
        let retired = fold.retired >= 0 ? ", and sites were retired at seq \(fold.retired)" : ""
        return Finding(
            .warning,
            "site",
            "the stream does not know \(site), whose op 0 stands at seq \(first): its horizon is at seq"
                + " \(fold.horizon)\(retired), so the site has ended and was forgotten, or it never began",
            do: "The device takes a new site. It sends under that only what it never handed to a node: what it did may"
                + " have counted."
        )
    }

    /// What the log has of the site beyond what was consumed.
    private func later(_ fold: Fold, after op: Op, _ hasEnded: Bool) -> [Finding] {
        let waiting = report.siteEvents.filter { $0.seq > fold.seq && $0.op > op }
        let passed = report.siteEvents.filter { $0.seq <= fold.seq && $0.op > op + 1 }
        var findings: [Finding] = []
        if let first = waiting.first, let last = waiting.last {
            findings.append(
                Finding(
                    .note,
                    "site",
                    "ops \(first.op) to \(last.op) are in the log up to seq \(last.seq) and not folded yet",
                    do: "Ask again: see under lag whether that goes on."
                )
            )
        }
        if let first = passed.first, !hasEnded {
            findings.append(
                Finding(
                    .problem,
                    "site",
                    "op \(first.op) stands at seq \(first.seq) and was not consumed: op \(op + 1) is missing before it",
                    do: "The device sends again from op \(op + 1). If it has it no more, it takes a new site."
                )
            )
        }
        return findings
    }

    private func ago(_ atMs: Int64) -> String { ", \(age(ms: nowMs - atMs)) ago" }
}
