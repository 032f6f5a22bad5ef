/// A run before the judge: its histories, the dumps of its log, the snapshots that nodes answered.
///
/// Each is looked at once, and no two of them are compared with each other where both can be compared with the log; so
/// the work grows with the number of lines and not faster. Partitions are folded, and histories walked, side by side.
public struct Trial: Sendable {
    private let histories: [HistoryFile]
    private let index: LogIndex
    private let snapshots: [MappedFile]
    private var reasons: [String] = []

    /// What lies in a folder: `*.history.jsonl`, `log*.jsonl`, `*.snapshot.jsonl`; and dumps that lie elsewhere. Throws
    /// where there is no such folder, or nothing in it that could be judged.
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
        if dumps.isEmpty, more.isEmpty {
            reasons.append("there is no dump of the log: add one as log.jsonl, from `reel dump` or `kcat -C -e -J`")
        }
    }

    /// Judges.
    public func verdict() async -> Verdict {
        var findings = Findings()
        var reasons = reasons
        let claims = Claims(histories, snapshots)
        reasons += claims.troubles
        let evidence = await log(claims, &findings, &reasons)
        let results = await walk(evidence)
        reasons += results.compactMap(\.trouble)
        for result in results { findings.add(result.findings) }
        for epoch in results.reduce(into: Set<UInt64>(), { $0.formUnion($1.unknownEpochs) }) where !index.files.isEmpty
        {
            reasons.append("there is no dump of the log of epoch \(hex(epoch, digits: 16)), which histories speak of")
        }
        Assembly(results, histories, evidence).judge(&findings)
        Inheritance(evidence: evidence).judge(&findings)
        if findings.facts[Invariant.ackedLoss.rawValue] + findings.facts[Invariant.oneOrder.rawValue] == 0 {
            reasons.append("no history has an ack or an event that could be held against the log")
        }
        for (reason, count) in findings.unjudged.sorted(by: { $0.key < $1.key }) {
            reasons.append("\(count) facts could not be judged: \(reason)")
        }
        return Verdict(findings, reasons: reasons, notes: notes(results, evidence))
    }

    /// Reads and folds every partition, several at a time.
    private func log(_ claims: Claims, _ findings: inout Findings, _ reasons: inout [String]) async -> LogEvidence {
        var counts: [UInt64: Int] = [:]
        for history in histories { counts.merge(history.epochs) { max($0, $1) } }
        var logs: [UInt64: LogEvidence.Log] = [:]
        for (epoch, entries) in index.partitions {
            guard let count = counts[epoch] else {
                // Nobody was there.
                continue
            }
            if let beyond = entries.keys.max(), beyond >= count {
                reasons.append("the dump has a partition \(beyond), and histories know \(count) partitions")
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
                if let trouble = partition.trouble { reasons.append(trouble) }
            }
            let partitions = judged.map(\.0).sorted { $0.number < $1.number }
            logs[epoch] = LogEvidence.Log(epoch: epoch, partitions: partitions)
        }
        return LogEvidence(logs: logs)
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
        let cut = results.count { !$0.isWhole }
        let epochs = evidence.logs.keys.sorted().map { hex($0, digits: 16) }
        var notes = [
            "\(results.count) histories of \(lines) lines; \(evidence.recordCount) records of the log, "
                + "epoch \(epochs.joined(separator: ", "))"
        ]
        let partitions = evidence.logs.values.flatMap(\.partitions)
        let (empty, void) = partitions.reduce((0, 0)) { ($0.0 + $1.empty, $0.1 + $1.void) }
        if empty + void > 0 {
            notes.append("\(void) records are void, and \(empty) seqs empty: no effect, for everybody")
        }
        if cut > 0 { notes.append("\(cut) histories have no end: they are evidence up to where they were cut") }
        if histories.contains(where: \.isBroken) {
            notes.append("the driver never said that all was healed, so nothing can be stuck")
        }
        return notes
    }
}
