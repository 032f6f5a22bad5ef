import ReelCore

/// The findings that follow from a report of a stream. Pure: equal reports have equal findings.
struct StreamDiagnosis {
    let report: StreamReport
    /// The current time, in milliseconds since 1970.
    let nowMs: Int64

    /// All findings, the worst first.
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
                    "the head of \(report.stream) cannot be read: \(failure.message)",
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
                    do: "Run the doctor again: the lines about lag show whether the nodes catch up."
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
                        ? "Its file is wrong: stop it, move its data folder away, start it; it folds the log again."
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
                        + "right state. A node with another state must rebuild its files: stop it, move its data "
                        + "folder away, start it."
                )
            )
        }
        if report.states.isEmpty {
            findings.append(
                Finding(
                    .warning,
                    "stream",
                    "the state of \(report.stream) was not checked: no snapshot node is known that answers",
                    do: "Name a snapshot node, or an operator's port (--admin-listen), with --url."
                )
            )
        } else if report.isPartial {
            let asked = report.states.map { "\($0.node)" }.joined(separator: ", ")
            findings.append(
                Finding(
                    .note,
                    "stream",
                    "the state of \(report.stream) was read from \(asked) only: the list of snapshot nodes is unknown",
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
            // A record that is not folded yet can be the first event of the stream.
            let head = try? report.head.get()
            let isWhole = head.map { $0.epoch == fold.epoch.description && $0.head <= fold.seq } ?? false
            findings.append(
                Finding(
                    isWhole ? .problem : .note,
                    "stream",
                    "\(report.stream) has no events: none had an effect in partition \(fold.partition) up to seq "
                        + "\(fold.seq)",
                    do: "Check that its name is spelled as on the devices."
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
        failure.code?.adviceToAsker ?? "Check that the node runs, see the lines about nodes."
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
                    "the events of \(site) in the log cannot be read: \(failure.message)",
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
                    + "forget all events up to it, and its queue continues with op \(state.op + 1)"
            )
        )
        if state.end >= 0 {
            findings.append(
                Finding(
                    .warning,
                    "site",
                    "it ended with seq \(state.end): later events of it have no effect (gap)",
                    do: "The device takes a new site, and publishes its queue there."
                )
            )
        }
        for text in lostTexts(state.lost) {
            findings.append(Finding(.note, "site", text, do: ErrorCode.stale.entry.advice))
        }
        return findings + later(fold, after: state.op, state.end >= 0)
    }

    /// Returns a sentence for each mark that makes splices of the site stale.
    private func lostTexts(_ lost: LostTexts) -> [String] {
        var texts = lost.fields.map {
            "its event at seq \($0.seq) was rejected and edited the text \($0): splices of that field with a lower "
                + "base are stale"
        }
        if lost.all >= 0 {
            texts.append(
                "events up to seq \(lost.all) were rejected and edited texts: splices with a lower base are stale"
            )
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
                "no event of \(site) was consumed: \(first ?? "the log has none of it\(begin)")",
                do: first == nil
                    ? "Check the nacks that the device gets, and that it uses this cluster and this stream."
                    : "The device sends its events again from op 0; if it cannot, it takes a new site."
            )
        ]
    }

    private func forgotten(_ site: Site, _ first: Seq, _ fold: Fold) -> Finding {
        let retired = fold.retired >= 0 ? ", and sites were retired at seq \(fold.retired)" : ""
        return Finding(
            .warning,
            "site",
            "the stream does not know \(site), whose op 0 is at seq \(first): its horizon is at seq"
                + " \(fold.horizon)\(retired), so the site has ended and was forgotten, or it never began",
            do: "The device takes a new site. It sends there only events that it never handed to a node: the others may"
                + " have been applied."
        )
    }

    /// The findings about events of the site in the log that are not consumed.
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
                    do: "Run the doctor again: the lines about lag show whether the nodes catch up."
                )
            )
        }
        if let first = passed.first, !hasEnded {
            findings.append(
                Finding(
                    .problem,
                    "site",
                    "op \(first.op) is at seq \(first.seq) and was not consumed: op \(op + 1) is missing before it",
                    do: "The device sends its events again from op \(op + 1). If it no longer has them, it takes a new"
                        + " site."
                )
            )
        }
        return findings
    }

    private func ago(_ atMs: Int64) -> String { ", \(age(ms: nowMs - atMs)) ago" }
}
