/// The check of a run: its histories, the dumps of its log, and the snapshots of its nodes.
///
/// Each file is read once. Two files are never compared with each other if both can be compared with the log. The work
/// therefore grows linearly with the number of lines. Partitions are folded, and histories are read, in parallel.
public struct RunCheck: Sendable {
    private let histories: [HistoryFile]
    private let index: LogIndex
    private let snapshots: [MappedFile]
    private let losses: [UInt64: PrintedLoss]
    /// True if all printed losses could be read.
    private let lossesAreKnown: Bool
    private var reasons: [String] = []

    /// Opens the files of a folder: `*.history.jsonl`, `log*.jsonl`, `*.snapshot.jsonl`, `*.epoch.txt`.
    /// - Parameter logs: paths of further dumps in other folders.
    /// - Throws: a `Fault` if the folder does not exist, or contains nothing that can be checked.
    public init(folder: String, logs: [String]) throws(Fault) {
        let names = try names(in: folder)
        func files(_ isMeant: (String) -> Bool) throws(Fault) -> [MappedFile] {
            try names.filter(isMeant).map { (name) throws(Fault) in try MappedFile("\(folder)/\(name)") }
        }
        let others = [".snapshot.jsonl", ".history.jsonl"]
        let dumps = try files { name in
            name.hasPrefix("log") && name.hasSuffix(".jsonl") && !others.contains(where: name.hasSuffix)
        }
        let more = try logs.map { (path) throws(Fault) in try MappedFile(path) }
        snapshots = try files { $0.hasSuffix(".snapshot.jsonl") }
        histories = try files { $0.hasSuffix(".history.jsonl") }.map { HistoryFile($0) }
        guard !histories.isEmpty else {
            throw Fault("`\(folder)` holds no history: no file there ends with .history.jsonl")
        }
        let epochs = histories.reduce(into: Set<UInt64>()) { $0.formUnion($1.epochs.keys) }
        index = LogIndex(dumps + more, fallback: epochs.count == 1 ? epochs.first : nil)
        reasons = index.troubles
        var (losses, doubts) = ([UInt64: PrintedLoss](), [String]())
        for file in try files({ $0.hasSuffix(".epoch.txt") }) {
            do throws(Fault) {
                let loss = try PrintedLoss(file)
                guard losses[loss.old] ?? loss == loss else {
                    throw Fault(
                        "\(file.name) and another file say different things of what one epoch has lost; "
                            + "keep the one that the last `reel epoch new` printed"
                    )
                }
                losses[loss.old] = loss
            } catch {
                doubts.append(error.reason)
            }
        }
        self.losses = losses
        lossesAreKnown = doubts.isEmpty
        reasons += doubts
        if dumps.isEmpty, more.isEmpty {
            reasons.append("there is no dump of the log: add one as log.jsonl, from `reel dump` or `kcat -C -e -J`")
        }
    }

    /// Checks the run and returns the verdict.
    public func verdict() async -> Verdict {
        var findings = Findings()
        var reasons = reasons
        let claims = StateChecks(histories, snapshots, losses)
        reasons += claims.troubles
        let evidence = await log(claims, &findings, &reasons)
        let results = await walk(evidence)
        let known = Set(reasons)
        reasons += results.compactMap(\.trouble).filter { !known.contains($0) }
        reasons += results.flatMap(\.doubts)
        let cut = results.filter(\.isCut).map(\.file)
        if !cut.isEmpty {
            let names = cut.prefix(3).joined(separator: ", ") + (cut.count > 3 ? " and \(cut.count - 3) more" : "")
            reasons.append(
                "no line of end in \(names): cut, or its writer was killed; what it saw later is not known; "
                    + "record the run again, up to its end"
            )
        }
        for result in results { findings.add(result.findings) }
        let spokenOf = results.reduce(into: claims.epochs) { $0.merge($1.unknownEpochs) { first, _ in first } }
        for (epoch, place) in spokenOf.sorted(by: { $0.key < $1.key })
        where !index.files.isEmpty && evidence.logs[epoch] == nil {
            let name = hex(epoch, digits: 16)
            reasons.append(
                "there is no dump of the log of epoch \(name), which \(place) speaks of; add one as log-\(name).jsonl"
            )
        }
        CrossHistoryChecks(results, histories, evidence).judge(&findings)
        if lossesAreKnown { EpochTransitionCheck(evidence: evidence).judge(&findings) }
        if findings.facts[Invariant.ackedLoss.rawValue] + findings.facts[Invariant.oneOrder.rawValue] == 0 {
            reasons.append(
                "no history has an ack or an event that could be held against the log; record a run in which there are"
            )
        }
        if results.contains(where: \.isOwedEvents), results.allSatisfy({ $0.arrived == 0 }) {
            reasons.append(
                "readers have subscribed to streams that have events, and no history has one that arrived; "
                    + "record a run whose readers stay until they have read"
            )
        }
        for (reason, facts) in findings.unjudged.sorted(by: { $0.key < $1.key }) {
            let place = facts.place.map { ", the first at \($0)" } ?? ""
            reasons.append("\(facts.count) facts could not be checked\(place): \(reason)")
        }
        return Verdict(
            findings,
            reasons: reasons,
            notes: notes(results, evidence),
            printedAsLost: results.reduce(0) { $0 + $1.printedAsLost }
        )
    }

    /// Reads and folds every partition, several in parallel.
    private func log(_ claims: StateChecks, _ findings: inout Findings, _ reasons: inout [String]) async -> LogEvidence
    {
        var counts: [UInt64: Int] = [:]
        for history in histories { counts.merge(history.epochs) { max($0, $1) } }
        var logs: [UInt64: LogEvidence.Log] = [:]
        for (epoch, entries) in index.partitions {
            guard let count = counts[epoch] else {
                // No history was recorded in this epoch.
                continue
            }
            if let beyond = entries.keys.max(), beyond >= count {
                reasons.append(
                    "the dump of epoch \(hex(epoch, digits: 16)) has a partition \(beyond), and histories know "
                        + "\(count) partitions; put there the dump of the log that they were on"
                )
                continue
            }
            let judged = await withTaskGroup(of: (LoggedPartition, Findings).self) { group in
                for number in 0..<count {
                    group.addTask { [index] in
                        claims.judge(epoch, number, of: count, entries[number] ?? [], index)
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for (partition, found) in judged {
                findings.add(found)
                reasons += partition.troubles
            }
            let partitions = judged.map(\.0).sorted { $0.number < $1.number }
            logs[epoch] = LogEvidence.Log(epoch: epoch, partitions: partitions)
        }
        return LogEvidence(logs: logs, losses: losses)
    }

    private func walk(_ evidence: LogEvidence) async -> [HistoryWalk.Result] {
        await withTaskGroup(of: (Int, HistoryWalk.Result).self) { group in
            for (number, history) in histories.enumerated() {
                group.addTask {
                    var walk = HistoryWalk(history.file, against: evidence)
                    return (number, walk.run())
                }
            }
            var results = [HistoryWalk.Result?](repeating: nil, count: histories.count)
            for await (number, result) in group { results[number] = result }
            return results.compactMap { $0 }
        }
    }

    private func notes(_ results: [HistoryWalk.Result], _ evidence: LogEvidence) -> [String] {
        let lines = results.reduce(0) { $0 + $1.lines }
        let epochs = evidence.logs.keys.sorted().map { hex($0, digits: 16) }
        let log =
            epochs.isEmpty
            ? "no record of a log"
            : "\(evidence.recordCount) records of the log, epoch \(epochs.joined(separator: ", "))"
        var notes = ["\(results.count) histories of \(lines) lines; \(log)"]
        let partitions = evidence.logs.values.flatMap(\.partitions)
        let (empty, void) = partitions.reduce((0, 0)) { ($0.0 + $1.empty, $0.1 + $1.void) }
        if empty + void > 0 {
            notes.append("\(void) records are void, and \(empty) seqs empty: they have no effect for any reader")
        }
        let lost = results.reduce(0) { $0 + $1.printedAsLost }
        if lost > 0 { notes.append("\(lost) acks were of events that an operator was told are lost with their log") }
        if histories.contains(where: \.isBroken) {
            notes.append("the driver never said that all was healed, so nothing can be stuck")
        }
        return notes
    }
}
