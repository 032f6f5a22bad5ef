/// Compares the state with which an epoch begins with the end of the epoch before it. Nothing may be lost in between
/// except what was printed as lost.
struct EpochTransitionCheck {
    let evidence: LogEvidence

    /// Compares each pair of epochs for which both dumps exist.
    func judge(_ findings: inout Findings) {
        for old in evidence.logs.values {
            guard let name = evidence.next(of: old), let new = evidence.logs[name] else { continue }
            guard let ended = ended(old, next: name), new.partitions.allSatisfy(isKnown),
                new.partitions.allSatisfy({ $0.planted != nil })
            else {
                findings.unjudged(
                    "what the next epoch begins with, and its dump or that of this one does not tell; dump both again",
                    at: "the end of epoch \(hex(old.epoch, digits: 16))"
                )
                continue
            }
            compare(old, ended, new, &findings)
        }
        oneIsTheFirst(&findings)
    }

    private func isKnown(_ partition: LoggedPartition) -> Bool { partition.isWhole && !partition.isPartial }

    /// Returns the state of all streams that the next epoch must begin with; nil if the dump is not sufficient.
    private func ended(_ log: LogEvidence.Log, next: UInt64) -> [Text: StreamState]? {
        let loss = evidence.losses[log.epoch]
        var streams: [Text: StreamState] = [:]
        for partition in log.partitions {
            let name = partition.fold.next.flatMap { LineReader.hex64($0.bytes) }
            guard name == next || loss != nil && name == nil else { return nil }
            let state: [Text: StreamState]
            if loss?.kept[partition.number] != nil {
                guard let kept = partition.kept else { return nil }
                state = kept
            } else {
                guard isKnown(partition), partition.foldable == .max else { return nil }
                state = partition.fold.streams
            }
            streams.merge(state) { a, _ in a }
        }
        return streams
    }

    /// Checks that only one epoch, the first, is not named by another one. For every other epoch it must be known from
    /// which state it begins. If two epochs have no end, one of them was abandoned without a printed report of its
    /// losses.
    private func oneIsTheFirst(_ findings: inout Findings) {
        let named = Set(evidence.logs.values.compactMap(evidence.next(of:)))
        let unnamed = evidence.logs.keys.count { !named.contains($0) }
        guard unnamed > 1 else { return }
        let open = evidence.logs.values.filter { log in
            evidence.next(of: log) == nil && log.partitions.allSatisfy { isKnown($0) && $0.foldable == .max }
        }.sorted { $0.epoch < $1.epoch }
        guard open.count > 1 else {
            return findings.unjudged(
                "what an epoch begins with, and no dump and no print names it as the next one; add the dump that does, "
                    + "or what `reel epoch new` printed as EPOCH.epoch.txt"
            )
        }
        let names = open.map { hex($0.epoch, digits: 16) }.joined(separator: " and ")
        findings.fact(.inheritance)
        findings.violation(
            .inheritance,
            "the epochs \(names) have no end that names the next one, and of none was printed what is lost",
            open.flatMap { log in log.partitions.prefix(1).map { $0.quote($0.last) } }
        )
    }

    private func compare(
        _ old: LogEvidence.Log,
        _ ended: [Text: StreamState],
        _ new: LogEvidence.Log,
        _ findings: inout Findings
    ) {
        let begun = new.partitions.reduce(into: [:]) { $0.merge($1.planted ?? [:]) { a, _ in a } }
        for stream in Set(ended.keys).union(begun.keys).sorted() {
            findings.fact(.inheritance)
            let (end, begin) = (ended[stream] ?? StreamState(), begun[stream] ?? StreamState())
            guard let what = end.difference(from: begin) else { continue }
            let (from, into) = (old.partition(of: stream), new.partition(of: stream))
            let kept = evidence.losses[old.epoch]?.kept[from.number]
            findings.violation(
                .inheritance,
                "epoch \(hex(new.epoch, digits: 16)) begins with another \(what) of stream \(stream.string) than epoch "
                    + "\(hex(old.epoch, digits: 16)) "
                    + (kept.map { "had at seq \($0), and a loss was printed only for later seqs" } ?? "ended with"),
                [(kept ?? from.barriers.last).flatMap(from.quote), into.barriers.first.flatMap(into.quote)]
            )
        }
    }
}

extension StreamState {
    private struct Written: Equatable {
        let value: [UInt8]
        let site: Site
    }

    private struct Author: Equatable {
        let by: Text?
        let op: Int64
        let hasEnded: Bool
    }

    /// Returns the first difference of two states in words, apart from seqs and the history of texts; nil if there is
    /// none.
    fileprivate func difference(from other: StreamState) -> String? {
        func first<Key: Comparable, Value: Equatable>(_ part: (StreamState) -> [Key: Value]) -> Key? {
            let (a, b) = (part(self), part(other))
            return Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.min()
        }
        let object = first {
            $0.objects.mapValues { object in
                object.fields.mapValues { Written(value: $0.value.canonical, site: $0.writer.site) }
            }
        }
        if let object { return "object \(object.model.string)/\(object.id.string)" }
        if let tombstone = first({ $0.tombstones.mapValues { _ in true } }) {
            return "tombstone of \(tombstone.model.string)/\(tombstone.id.string)"
        }
        let site = first { $0.sites.mapValues { Author(by: $0.by, op: $0.op, hasEnded: $0.end != -1) } }
        if let site { return "site \(site.text.string)" }
        return (retired == -1) == (other.retired == -1) ? nil : "retirement of sites"
    }
}
