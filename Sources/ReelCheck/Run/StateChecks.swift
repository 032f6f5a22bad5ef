/// Compares claimed states, which are digests in histories and whole snapshots, with the fold as of their seq.
struct StateChecks: Sendable {
    private struct Snapshot: Sendable {
        let epoch: UInt64
        let snapshot: NaiveSnapshot
        let file: MappedFile
    }

    private let states: [(claim: HistoryFile.ClaimedState, file: MappedFile)]
    private let snapshots: [Snapshot]
    private let losses: [UInt64: PrintedLoss]
    private(set) var troubles: [String] = []
    /// The epochs for which there is a snapshot, with the place of the first one.
    var epochs: [UInt64: String] {
        snapshots.reduce(into: [:]) { epochs, item in
            if epochs[item.epoch] == nil { epochs[item.epoch] = item.file.place(lineAt: 0) }
        }
    }

    init(_ histories: [HistoryFile], _ files: [MappedFile], _ losses: [UInt64: PrintedLoss]) {
        self.losses = losses
        troubles = histories.compactMap(\.trouble)
        states = histories.flatMap { history in history.states.map { ($0, history.file) } }
        var snapshots: [Snapshot] = []
        for file in files {
            do throws(Fault) {
                let snapshot = try NaiveSnapshot(Array(file.bytes))
                guard let epoch = LineReader.hex64(snapshot.epoch.bytes) else { throw Fault("its epoch is none") }
                snapshots.append(Snapshot(epoch: epoch, snapshot: snapshot, file: file))
            } catch {
                troubles.append("\(file.name) is no snapshot: \(error.reason); fetch it again, or take it away")
            }
        }
        self.snapshots = snapshots
    }

    /// Reads and folds a partition, and compares it with all claims about it.
    func judge(
        _ epoch: UInt64,
        _ number: Int,
        of partitions: Int,
        _ entries: [LogIndex.Entry],
        _ index: LogIndex
    ) -> (LoggedPartition, Findings) {
        func isHere(_ stream: Text) -> Bool { ReelCheck.partition(of: stream.bytes, among: partitions) == number }
        let states = states.filter { $0.claim.epoch == epoch && isHere($0.claim.stream) }
        let snapshots = snapshots.filter { $0.epoch == epoch && isHere($0.snapshot.stream) }
        let deltas = snapshots.compactMap { $0.snapshot.after >= 0 ? $0.snapshot.after : nil }
        let kept = losses[epoch]?.kept[number]
        let claimed = states.map(\.claim.seq) + snapshots.map(\.snapshot.seq)
        let seqs = Set(claimed + deltas + [kept].compactMap(\.self)).filter { $0 >= -1 }
        var keptState: [Text: StreamState]? = kept == -1 ? [:] : nil
        var findings = Findings()
        var bases: [StreamAt: NaiveSnapshot] = [:]
        let isWhole = (entries.first?.seq ?? 0) == 0
        let end = LogEnd(of: epoch, number, entries, index, isLost: kept != nil)
        var partition = LoggedPartition(
            number,
            of: partitions,
            epoch: hex(epoch, digits: 16),
            end,
            index,
            keptSeq: kept,
            pausing: isWhole ? Array(seqs) : []
        ) { seq, fold in
            if fold.isStopped { return }
            if seq == kept { keptState = fold.streams }
            for (claim, file) in states where claim.seq == seq { compare(claim, file, fold, &findings) }
            for item in snapshots where item.snapshot.after == seq {
                let stream = item.snapshot.stream
                bases[StreamAt(stream: stream, seq: seq)] = fold.snapshot(of: stream, at: seq)
            }
            for item in snapshots where item.snapshot.seq == seq { compare(item, fold, bases, &findings) }
        }
        partition.kept = keptState
        for contradiction in partition.contradictions {
            findings.violation(.oneOrder, "two dumps differ at seq \(contradiction.seq)", contradiction.lines)
        }
        vanished(end, partition, index, &findings)
        for (claim, file) in states {
            bound(claim.seq, "\(claim.of) says that it has", file.quote(lineAt: claim.start), partition, &findings)
        }
        for item in snapshots {
            bound(item.snapshot.seq, "there is", item.file.quote(lineAt: 0), partition, &findings)
        }
        return (partition, findings)
    }

    /// Reports records that an earlier dump contains and the last one does not: they are gone from the log.
    private func vanished(_ end: LogEnd, _ partition: LoggedPartition, _ index: LogIndex, _ findings: inout Findings) {
        guard let first = end.vanished.first, let last = end.last else { return }
        findings.fact(.oneOrder)
        findings.violation(
            .oneOrder,
            "partition \(partition.number) ends at seq \(last.seq), and after that seq an earlier dump has "
                + "\(end.vanished.count) records",
            [index.quote(first), index.quote(last)]
        )
    }

    /// Checks that a claimed state is not beyond the log's end, because no party can have such a state. If the state
    /// cannot be compared with the fold, the reason is noted, unless its seq was printed as lost.
    private func bound(
        _ seq: Int64,
        _ who: String,
        _ quote: Quote,
        _ partition: LoggedPartition,
        _ findings: inout Findings
    ) {
        if seq > partition.last, partition.isPrintedAsLost(seq) { return }
        findings.fact(.heads)
        if seq > partition.last, partition.reasonNotToJudge(seq) == nil {
            findings.violation(
                .heads,
                "\(who) a state as of seq \(seq) of partition \(partition.number), and the log ends at "
                    + "\(partition.last)",
                [quote, partition.quote(partition.last)]
            )
            return
        }
        if !partition.isWhole {
            let reason = "a state, and the dump does not begin with the log's first record; add one that does"
            findings.unjudged(reason, at: quote.place)
        } else if seq >= 0, let reason = partition.reasonNotToJudge(seq) {
            findings.unjudged(reason, at: quote.place)
        }
    }

    private struct StreamAt: Hashable {
        let stream: Text
        let seq: Int64
    }

    private func compare(
        _ claim: HistoryFile.ClaimedState,
        _ file: MappedFile,
        _ fold: borrowing NaiveFold,
        _ findings: inout Findings
    ) {
        findings.fact(.digest)
        let digest = fold.digest(of: claim.stream.string)
        guard digest != hex(claim.digest, digits: 16) else { return }
        findings.violation(
            .digest,
            "\(claim.of) says that the state of \(claim.stream.string) at seq \(claim.seq) has the digest "
                + "\(hex(claim.digest, digits: 16)), and the fold of the log has \(digest)",
            [file.quote(lineAt: claim.start)]
        )
    }

    private func compare(
        _ item: Snapshot,
        _ fold: borrowing NaiveFold,
        _ bases: [StreamAt: NaiveSnapshot],
        _ findings: inout Findings
    ) {
        findings.fact(.snapshot)
        var read = item.snapshot
        if read.after >= 0 {
            let base = bases[StreamAt(stream: read.stream, seq: read.after)]
            guard let whole = base?.advanced(by: read) else {
                findings.violation(
                    .snapshot,
                    "a delta of \(read.stream.string) from seq \(read.after) to \(read.seq) does not fit the state "
                        + "at which it begins",
                    [item.file.quote(lineAt: 0)]
                )
                return
            }
            read = whole
        }
        let own = fold.snapshot(of: read.stream, at: item.snapshot.seq)
        guard own?.normalForm != read.normalForm || item.snapshot.declaredDigest != own?.digest else { return }
        findings.violation(
            .snapshot,
            "the \(item.snapshot.after >= 0 ? "delta" : "snapshot") of \(read.stream.string) as of seq \(read.seq) is "
                + "not the fold of the log: \(difference(own, read))",
            [item.file.quote(lineAt: 0)]
        )
    }

    /// Returns the first line that differs, in words.
    private func difference(_ own: NaiveSnapshot?, _ other: NaiveSnapshot) -> String {
        guard let own else { return "there is no state inside the seeds of an epoch" }
        let (a, b) = (lines(own), lines(other))
        for (a, b) in zip(a, b) where a != b {
            return "the fold has `\(a.prefix(160))`, and the snapshot has `\(b.prefix(160))`"
        }
        return a.count == b.count ? "its digest is another" : "the fold has \(a.count) lines, and there are \(b.count)"
    }

    private func lines(_ snapshot: NaiveSnapshot) -> [String] {
        snapshot.normalForm.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension NaiveFold {
    /// Returns the state of a stream as of `seq`; nil within the sequence of seeds. The partition must not have been
    /// folded beyond `seq`.
    fileprivate func snapshot(of stream: Text, at seq: Int64) -> NaiveSnapshot? {
        guard normalForm(of: stream.string) != nil else { return nil }
        return NaiveSnapshot(
            stream: stream,
            epoch: epoch,
            partition: partition,
            seq: seq,
            next: next,
            state: streams[stream] ?? StreamState()
        )
    }
}
