/// What an epoch begins with, held against what the one before it ended with: on the way nothing may be lost.
struct Inheritance {
    let evidence: LogEvidence

    /// Compares each pair of epochs of which both dumps are there.
    func judge(_ findings: inout Findings) {
        for old in evidence.logs.values {
            guard let name = old.partitions.lazy.compactMap(\.fold.next).first,
                let next = LineReader.hex64(name.bytes), let new = evidence.logs[next]
            else { continue }
            guard (old.partitions + new.partitions).allSatisfy({ $0.isWhole && !$0.isPartial }),
                old.partitions.allSatisfy({ $0.foldable == .max && $0.fold.next == name }),
                new.partitions.allSatisfy({ $0.planted != nil })
            else {
                findings.unjudged("what an epoch begins with, and a dump of it or of the one before is not whole")
                continue
            }
            compare(old, new, &findings)
        }
    }

    private func compare(_ old: LogEvidence.Log, _ new: LogEvidence.Log, _ findings: inout Findings) {
        let ended = old.partitions.reduce(into: [:]) { $0.merge($1.fold.streams) { a, _ in a } }
        let begun = new.partitions.reduce(into: [:]) { $0.merge($1.planted ?? [:]) { a, _ in a } }
        for stream in Set(ended.keys).union(begun.keys).sorted() {
            findings.fact(.inheritance)
            let (end, begin) = (ended[stream] ?? StreamState(), begun[stream] ?? StreamState())
            guard let what = end.difference(from: begin) else { continue }
            let (from, into) = (old.partition(of: stream), new.partition(of: stream))
            findings.violation(
                .inheritance,
                "epoch \(hex(new.epoch, digits: 16)) begins with another \(what) of stream \(stream.string) than epoch "
                    + "\(hex(old.epoch, digits: 16)) ended with",
                [from.barriers.last.flatMap(from.quote), into.barriers.first.flatMap(into.quote)]
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

    /// The first thing in which two states differ, seqs and the history of texts apart, for people; nil if they do not.
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
        return site.map { "site \($0.text.string)" }
    }
}
