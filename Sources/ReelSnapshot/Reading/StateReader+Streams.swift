import ReelCore
import ReelNode
import ReelSQLite

extension StateReader {
    /// Returns the streams of this partition in ranges of names, in name order. Reads only the rows that it returns,
    /// and no state.
    ///
    /// - Parameters:
    ///   - ranges: The ranges, in name order and disjoint.
    ///   - after: The first stream follows this text; empty: no lower bound.
    ///   - bound: All streams are before this one; nil: no upper bound.
    ///   - limit: The maximum number of streams.
    func streams(
        in ranges: ArraySlice<NameRange>,
        after: String,
        bound: StreamName?,
        limit: Int
    ) throws -> [ListedStream] {
        try reading(nil) { connection, _ in
            let rows = try connection.prepare(
                """
                SELECT \(StoredRow.streamColumns) FROM stream INDEXED BY sqlite_autoindex_stream_1
                WHERE name >= ? AND name < ? ORDER BY name
                """
            )
            var streams: [ListedStream] = []
            // No name contains a space, so this is the first text after the name `after`.
            let behind = after.isEmpty ? "" : after + " "
            for range in ranges where range.isPrefix || isHere(range.text) {
                guard streams.count < limit, bound.map({ $0.description > range.lower }) ?? true else { break }
                rows.reset()
                rows.bind(1, max(range.lower, behind))
                rows.bind(2, bound.map { min(range.upper, $0.description) } ?? range.upper)
                while streams.count < limit, try rows.step() {
                    try StoredRow.checkStream(rows)
                    guard let name = StreamName(rows.text(1)), streams.last.map({ $0.stream < name }) ?? true else {
                        throw SnapshotFile.Unusable(reason: "the index of the streams' names is damaged")
                    }
                    streams.append(listed(name, rows))
                }
            }
            return streams
        }
    }

    /// True if the stream of this name belongs to this partition.
    private func isHere(_ name: String) -> Bool {
        StreamName(name)?.partition(of: identity.partitions) == identity.partition
    }

    private func listed(_ name: StreamName, _ row: Statement) -> ListedStream {
        let figures = StoredRow.figures(row)
        return ListedStream(
            stream: name,
            partition: identity.partition,
            objects: figures?.objects,
            bytes: figures?.bytes,
            sites: Int(row.integer(4)),
            seq: row.integer(5),
            atMs: figures?.atMs
        )
    }
}
