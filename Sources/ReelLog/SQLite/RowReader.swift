internal import Glibc
internal import ReelCore
internal import ReelSQLite

/// Reads a log's file through a connection of its own. It belongs to one thread at a time, and holds the file's state
/// only while a call runs, so that it never keeps a checkpoint waiting.
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

    /// A number that changes with every commit of another connection.
    func version() throws(LogError) -> Int64 {
        try asLogError { () throws(SQLiteError) in
            defer { dataVersion.reset() }
            return try dataVersion.step() ? dataVersion.integer(0) : 0
        }
    }

    /// Why records may be missing from the file; nil: no reason is known.
    func doubt() throws(LogError) -> FileDoubt? {
        try asLogError { () throws(SQLiteError) in
            defer { readDoubt.reset() }
            guard try readDoubt.step(), !readDoubt.isNull(0) else { return nil }
            return FileDoubt(rawValue: readDoubt.text(0))
        }
    }

    func nodes(since oldestMs: Int64) throws(LogError) -> [NodeAnnouncement] {
        try asLogError { () throws(SQLiteError) in try NodeTable.read(listNodes, since: oldestMs) }
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        try check(partition)
        let bounds: LogBounds? = try asLogError { () throws(SQLiteError) in
            let statement = try endsStatement(partition)
            defer { statement.reset() }
            guard try statement.step() else { return LogBounds.empty }
            let (last, count, row) = (statement.integer(0), statement.integer(1), statement.bytes(2))
            // SQLite does not notice a flipped bit in the count: records before what it says would be gone unseen.
            let isWhole = RowCursor(row, partition: partition, last: last)?.holds(count, upTo: last) ?? false
            return isWhole ? LogBounds(first: last - count + 1, last: statement.integer(3)) : nil
        }
        guard let bounds, bounds.last < largestInteger else {
            throw LogError(
                .damaged,
                "the first or the last row of partition \(partition) is damaged: \(LogFile.putAside): \(file.path)"
            )
        }
        return bounds
    }

    /// Records `from ... to`, at most about `bytes`; empty beyond the end.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try check(partition)
        guard from >= 0 else { throw .belowTheFirst(from, first: max(0, try bounds(partition).first)) }
        guard from <= to else { return RecordBatch(partition: partition, empty: from..<from) }
        if let batch = try readOnce(partition, from: from, to: to, bytes: bytes) { return batch }
        // A hole is read again before it is believed; rows are also missing where the log has been trimmed.
        if let batch = try readOnce(partition, from: from, to: to, bytes: bytes) { return batch }
        let bounds = try bounds(partition)
        if from < bounds.first { throw .belowTheFirst(from, first: bounds.first) }
        throw LogError(
            .damaged,
            "records from seq \(from) on are missing in partition \(partition): \(LogFile.putAside): \(file.path)"
        )
    }

    /// Nil if the first of the records is missing, though there are later ones.
    private func readOnce(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch? {
        var builder = BatchBuilder(partition: partition, from: from, to: to, bytes: bytes)
        let found: BatchBuilder.Progress = try asLogError { () throws(SQLiteError) in
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
        switch found {
        case .damaged(let last):
            throw file.damaged(partition, last)
        case .missing where builder.isEmpty:
            return nil
        case .more, .full, .missing:
            return builder.finish()
        }
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
