/// The end of a partition of a log, which is the end of its last dump. An earlier dump may fill gaps of the last one
/// below the end. Its records beyond the end are no longer in the log.
struct LogEnd {
    /// The entries of all dumps up to the end.
    private(set) var entries: [LogIndex.Entry]
    /// The records beyond the end that only an earlier dump contains.
    private(set) var vanished: [LogIndex.Entry] = []
    /// The last entry of the last dump, if there are several dumps.
    private(set) var last: LogIndex.Entry?
    /// The reason why the end is unknown, with advice; nil if the end is known.
    private(set) var trouble: String?

    /// Finds the end of partition `number` of an epoch.
    /// - Parameters:
    ///   - entries: the entries of all dumps, ordered by seq.
    ///   - isLost: true if this log was printed as lost. Then records that it no longer holds are taken from earlier
    ///     dumps.
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
        // Empty seqs at the end are not records, and kcat does not report them.
        vanished = behind.filter { !$0.isEmpty }
        if !vanished.isEmpty { self.entries.removeLast(behind.count) }
    }
}
