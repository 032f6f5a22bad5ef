/// Where a partition of a log ends: where its last dump does. An earlier dump may fill what the last one leaves out
/// below its end, but nothing that it has behind it is in the log any more.
struct LogEnd {
    /// What all dumps have, up to the end.
    private(set) var entries: [LogIndex.Entry]
    /// Records that only an earlier dump has, behind the end.
    private(set) var vanished: [LogIndex.Entry] = []
    /// Where the last dump ends, if there are several.
    private(set) var last: LogIndex.Entry?
    /// Why the end is not known, and what to do; nil: it is.
    private(set) var trouble: String?

    /// The end of partition `number` of an epoch, of which all dumps have these `entries`, by seq. `isLost`: it was
    /// printed that this log is lost, so what it does not hold any more is looked up in dumps from before.
    init(of epoch: UInt64, _ number: Int, _ entries: [LogIndex.Entry], _ index: LogIndex, isLost: Bool) {
        self.entries = entries
        let dumps = index.dumps[epoch] ?? []
        guard dumps.count > 1, !entries.isEmpty, !isLost, index.troubles.isEmpty else { return }
        let ends = entries.reduce(into: [Int32: Int64]()) { $0[$1.file] = $1.seq }
        let named = dumps.filter { index.isNamedLast($0, of: epoch) }.sorted()
        let candidates = named.isEmpty ? ends.keys.sorted() : named
        if let silent = candidates.first(where: { ends[$0] == nil }) {
            trouble =
                "\(index.files[Int(silent)].name) has nothing of partition \(number), of which another dump has "
                + "records: they were trimmed, or lost; dump the log again, all of it"
            return
        }
        guard let end = candidates.first.flatMap({ ends[$0] }), candidates.allSatisfy({ ends[$0] == end }) else {
            let ends = candidates.prefix(3).map { "at seq \(ends[$0] ?? -1) in \(index.files[Int($0)].name)" }
            trouble =
                "partition \(number) ends \(ends.joined(separator: ", ")), and which of them was taken last is not "
                + "known; call that one log-\(hex(epoch, digits: 16)).jsonl, and no other so or log.jsonl"
            return
        }
        last = entries.last { $0.seq == end && candidates.contains($0.file) }
        let behind = entries.suffix(entries.reversed().prefix { $0.seq > end }.count)
        // Empty seqs at the end are no records, and kcat does not tell of them.
        vanished = behind.filter { !$0.isEmpty }
        if !vanished.isEmpty { self.entries.removeLast(behind.count) }
    }
}
