internal import Glibc
internal import ReelBase
internal import ReelCore
internal import ReelSQLite

/// Reads a log's file through a connection of its own. Used by one thread at a time. It holds a read transaction only
/// during a call, so it never delays a checkpoint.
final class RowReader {
    private let file: LogFile
    private let connection: Connection
    private let dataVersion: Statement
    private let listNodes: Statement
    private let readDoubt: Statement
    private var rows: [Statement?]
    private var ends: [Statement?]

    init(_ file: LogFile) throws(LogError) {
        self.file = file
        connection = try file.connect(.readOnly)
        rows = Array(repeating: nil, count: file.partitions)
        ends = rows
        do throws(SQLiteError) {
            dataVersion = try connection.prepare("PRAGMA data_version")
            listNodes = try connection.prepare(NodeTable.list)
            readDoubt = try connection.prepare(FileRow.readDoubt)
        } catch {
            throw LogError(error, file.path)
        }
    }

    /// Returns a number that changes with every commit of another connection.
    func version() throws(LogError) -> Int64 {
        try asLogError { () throws(SQLiteError) in
            defer { dataVersion.reset() }
            return try dataVersion.step() ? dataVersion.integer(0) : 0
        }
    }

    /// Returns why records may be missing from the file; nil: no reason is known.
    func doubt() throws(LogError) -> FileDoubt? {
        try asLogError { () throws(SQLiteError) in
            defer { readDoubt.reset() }
            guard try readDoubt.step(), !readDoubt.isNull(0) else { return nil }
            return FileDoubt(rawValue: readDoubt.text(0))
        }
    }

    func nodes(since oldestMs: Int64) throws(LogError) -> [NodeAnnouncement] {
        try asLogError { () throws(SQLiteError) in
            try NodeTable.read(listNodes, since: oldestMs, nowMs: WallClock.nowMs())
        }
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        try check(partition)
        let bounds: LogBounds? = try asLogError { () throws(SQLiteError) in
            let statement = try endsStatement(partition)
            defer { statement.reset() }
            guard try statement.step() else { return LogBounds.empty }
            let (last, count, row) = (statement.integer(0), statement.integer(1), statement.bytes(2))
            // SQLite does not detect a flipped bit in the count. A wrong count would hide the first records without an
            // error.
            let isWhole = Self.isWhole(row, partition, last: last, count: count)
            return isWhole ? LogBounds(first: last - count + 1, last: statement.integer(3)) : nil
        }
        guard let bounds, bounds.last < largestInteger else {
            throw LogError(
                .damaged,
                "the first or the last row of partition \(partition) is damaged: found a row without the hash that was"
                    + " written with it in \(file.path); \(LogFile.passDamage)"
            )
        }
        return bounds
    }

    private static func isWhole(
        _ row: UnsafeRawBufferPointer,
        _ partition: Int,
        last: Seq,
        count: Int64
    ) -> Bool {
        RowCursor(row, partition: partition, last: last, count: count)?.holds(count, upTo: last) ?? false
    }

    /// Returns the first seq at or after `from` that can be read despite damaged rows or pages, and the last seq that
    /// was written; see `EventLog.readable`.
    func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds {
        try check(partition)
        let table = file.table(partition)
        /// Reads rows in the given order up to the first damaged page. Returns the last seq of the first row, and the
        /// first seq at or after `from` in an intact row. Unless `isWholeWalk`, the walk ends at the first intact row.
        func walk(_ order: String, isWholeWalk: Bool) throws(LogError) -> (first: Seq?, lowest: Seq?, isCut: Bool) {
            var (first, lowest): (Seq?, Seq?) = (nil, nil)
            do throws(SQLiteError) {
                let rows = try connection.prepare(
                    "SELECT last, count, records FROM \(table) WHERE last >= ?1 ORDER BY last \(order)"
                )
                rows.bind(1, from)
                while try rows.step() {
                    let (last, count) = (rows.integer(0), rows.integer(1))
                    first = first ?? last
                    guard Self.isWhole(rows.bytes(2), partition, last: last, count: count) else { continue }
                    lowest = max(from, last - count + 1)
                    guard isWholeWalk else { break }
                }
                return (first, lowest, false)
            } catch {
                guard error.kind == .corrupt else { throw LogError(error, file.path) }
                return (first, lowest, true)
            }
        }
        let forward = try walk("ASC", isWholeWalk: false)
        // Rows after a damaged page can only be reached from the end.
        let backward = try walk("DESC", isWholeWalk: forward.isCut && forward.lowest == nil)
        let last = max(backward.first ?? .none, from - 1)
        guard last < largestInteger else { throw LogError(.damaged, "found a row that ends with seq \(last)") }
        return LogBounds(first: forward.lowest ?? (forward.isCut ? backward.lowest : nil) ?? last + 1, last: last)
    }

    /// Returns records from `from` to `to`, at most about `bytes` bytes; empty beyond the end.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try check(partition)
        guard from >= 0 else { throw .belowTheFirst(from, first: max(0, try bounds(partition).first)) }
        guard from <= to else { return RecordBatch(partition: partition, empty: from..<from) }
        if let batch = try readOnce(partition, from: from, to: to, bytes: bytes) { return batch }
        // A gap is read twice before it is reported. Rows are also missing where the log has been trimmed.
        if let batch = try readOnce(partition, from: from, to: to, bytes: bytes) { return batch }
        let bounds = try bounds(partition)
        if from < bounds.first { throw .belowTheFirst(from, first: bounds.first) }
        throw LogError(
            .damaged,
            "records from seq \(from) on are missing in partition \(partition) of \(file.path); \(LogFile.passDamage)"
        )
    }

    /// Returns nil if the first of the records is missing although there are later ones.
    private func readOnce(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch? {
        var builder = BatchBuilder(partition: partition, from: from, to: to, bytes: bytes)
        let found: BatchBuilder.Progress
        do throws(SQLiteError) {
            found = try gather(partition, from: from, into: &builder)
        } catch {
            guard error.kind == .corrupt else { throw LogError(error, file.path) }
            // The records before a damaged page are returned first.
            if !builder.isEmpty { return builder.finish() }
            throw file.damaged(partition, from...from, "\(error)")
        }
        switch found {
        // The records before the damage are returned first.
        case .damaged(let seqs) where builder.isEmpty:
            throw file.damaged(partition, seqs)
        case .missing where builder.isEmpty:
            return nil
        case .more, .full, .missing, .damaged:
            return builder.finish()
        }
    }

    /// Adds rows until the batch is full.
    private func gather(
        _ partition: Int,
        from: Seq,
        into builder: inout BatchBuilder
    ) throws(SQLiteError) -> BatchBuilder.Progress {
        let statement = try rowsStatement(partition)
        defer { statement.reset() }
        statement.bind(1, from)
        while try statement.step() {
            let progress = builder.add(
                last: statement.integer(0),
                count: statement.integer(1),
                row: statement.bytes(2)
            )
            guard progress == .more else { return progress }
        }
        return .full
    }

    private func rowsStatement(_ partition: Int) throws(SQLiteError) -> Statement {
        if let statement = rows[partition] { return statement }
        let statement = try connection.prepare(
            "SELECT last, count, records FROM \(file.table(partition)) WHERE last >= ?1 ORDER BY last"
        )
        rows[partition] = statement
        return statement
    }

    private func endsStatement(_ partition: Int) throws(SQLiteError) -> Statement {
        if let statement = ends[partition] { return statement }
        let table = file.table(partition)
        let statement = try connection.prepare(
            """
            SELECT * FROM (SELECT last, count, records FROM \(table) ORDER BY last LIMIT 1),
                (SELECT last FROM \(table) ORDER BY last DESC LIMIT 1)
            """
        )
        ends[partition] = statement
        return statement
    }

    private func check(_ partition: Int) throws(LogError) {
        guard rows.indices.contains(partition) else { throw .noPartition(partition, of: rows.count) }
    }

    private func asLogError<R>(_ body: () throws(SQLiteError) -> R) throws(LogError) -> R {
        do throws(SQLiteError) {
            return try body()
        } catch {
            throw LogError(error, file.path)
        }
    }
}
