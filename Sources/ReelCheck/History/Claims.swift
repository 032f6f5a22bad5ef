/// What was said of states: digests in histories, and whole snapshots. They are held against the fold as of their seq.
struct Claims: Sendable {
    private struct Snapshot: Sendable {
        let epoch: UInt64
        let snapshot: NaiveSnapshot
        let file: MappedFile
    }

    private let states: [(claim: HistoryFile.ClaimedState, file: MappedFile)]
    private let snapshots: [Snapshot]
    private let losses: [UInt64: PrintedLoss]
    private(set) var troubles: [String] = []
    /// Epochs of which a snapshot lies there, and where the first is.
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

    /// Reads and folds a partition, and compares where something was said of it.
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
        var partition = LoggedPartition(
            number,
            of: partitions,
            epoch: hex(epoch, digits: 16),
            entries,
            index,
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
        for (claim, file) in states {
            guard let reason = reasonNotToJudge(claim.seq, partition) else { continue }
            findings.unjudged(reason, at: file.place(lineAt: claim.start))
        }
        for item in snapshots {
            guard let reason = reasonNotToJudge(item.snapshot.seq, partition) else { continue }
            findings.unjudged(reason, at: item.file.place(lineAt: 0))
        }
        return (partition, findings)
    }

    /// Why a state as of a seq was not held against the fold, and what to do; nil: it was.
    private func reasonNotToJudge(_ seq: Int64, _ partition: LoggedPartition) -> String? {
        if seq > partition.foldable { return partition.reasonNotToJudge(seq) }
        guard partition.isWhole else {
            return "a state, and the dump does not begin with the log's first record; add one that does"
        }
        return seq > partition.last ? "a state as of a seq beyond the dump's end; dump the log after all else" : nil
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
                        + "that it goes on from",
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

    /// The first line that differs, for people.
    private func difference(_ own: NaiveSnapshot?, _ other: NaiveSnapshot) -> String {
        guard let own else { return "there is no state inside the seeds of an epoch" }
        let (a, b) = (lines(own), lines(other))
        for (a, b) in zip(a, b) where a != b {
            return "the fold has `\(a.prefix(160))`, and there stands `\(b.prefix(160))`"
        }
        return a.count == b.count ? "its digest is another" : "the fold has \(a.count) lines, and there are \(b.count)"
    }

    private func lines(_ snapshot: NaiveSnapshot) -> [String] {
        snapshot.normalForm.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension NaiveFold {
    /// The state of a stream as of a seq behind which nothing of the partition has been folded; nil inside the seeds.
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
