internal import ReelBase
internal import ReelCore
internal import ReelSQLite

/// The writer's connection; it commits a group of jobs as one transaction. Used only on the writer's thread.
final class GroupCommit {
    private let file: LogFile
    private let connection: Connection
    private let begin: Statement
    private let end: Statement
    private let putNode: Statement
    /// The statements that keep the table of nodes small.
    private let (clampNodes, forgetNodes, boundNodes): (Statement, Statement, Statement)
    private var partitions: [PartitionStatements?]
    private var checkpoint: CheckpointPlan

    /// The row builders. The first `rowCount` hold the group's rows; the others are kept for later groups.
    private var rows: [RowBuilder] = []
    private var rowCount = 0
    /// The index of the row that takes the next record of each partition.
    private var open: [Int?]
    /// The next seq of each partition. Valid only inside a transaction.
    private var next: [Seq]

    private struct PartitionStatements {
        var last: Statement
        var insert: Statement
    }

    /// The size in bytes at which a group is full. Further jobs go into the next transaction.
    private static let comfortableSize = 8 << 20

    init(_ file: LogFile, checkpointFrames: Int) throws(LogError) {
        self.file = file
        connection = try file.connect(.readWrite)
        checkpoint = CheckpointPlan(frames: checkpointFrames)
        partitions = Array(repeating: nil, count: file.partitions)
        open = Array(repeating: nil, count: file.partitions)
        next = Array(repeating: 0, count: file.partitions)
        do throws(SQLiteError) {
            begin = try connection.prepare("BEGIN IMMEDIATE")
            end = try connection.prepare("COMMIT")
            putNode = try connection.prepare(NodeTable.put)
            (clampNodes, forgetNodes, boundNodes) = (
                try connection.prepare(NodeTable.clamp), try connection.prepare(NodeTable.forget),
                try connection.prepare(NodeTable.bound)
            )
        } catch {
            throw LogError(error, file.path)
        }
    }

    /// Takes jobs from the front until the group is full, commits them, and answers them.
    ///
    /// - Parameters:
    ///   - jobs: The waiting jobs; the committed ones are removed.
    ///   - onCommit: Called after a commit with records, with a function that returns them.
    func commit(_ jobs: inout ArraySlice<LogWriter.Job>, _ onCommit: (_ batches: () -> [RecordBatch]) -> Void) {
        let group = gather(&jobs)
        let error = write(group)
        if error == nil, rowCount > 0 { onCommit { rows[..<rowCount].map(\.batch) } }
        answer(group, error)
        copyBack()
    }

    /// Makes the file complete without its WAL, unless other users of the file prevent it.
    func close() {
        file.foldBack(connection)
    }

    // MARK: Before the transaction

    private func gather(_ jobs: inout ArraySlice<LogWriter.Job>) -> ArraySlice<LogWriter.Job> {
        rowCount = 0
        var size = 0
        var taken = jobs.startIndex
        while taken < jobs.endIndex, size < Self.comfortableSize {
            if case .append(let partition, let records, _) = jobs[taken] {
                for record in records {
                    add(record, to: partition)
                    size += record.key.count + record.value.count
                }
            }
            taken += 1
        }
        for row in rows[..<rowCount] {
            row.finish()
            open[row.partition] = nil
        }
        let group = jobs[..<taken]
        jobs = jobs[taken...]
        return group
    }

    private func add(_ record: LogAppend, to partition: Int) {
        if let row = open[partition], rows[row].add(record) { return }
        if rowCount == rows.count { rows.append(RowBuilder()) }
        rows[rowCount].begin(partition)
        _ = rows[rowCount].add(record)
        open[partition] = rowCount
        rowCount += 1
    }

    // MARK: The transaction

    private func write(_ group: ArraySlice<LogWriter.Job>) -> LogError? {
        file.lock.whileHeld {
            do throws(LogError) {
                try file.checkThatItIsThere()
                do throws(SQLiteError) {
                    try insert(group)
                } catch {
                    connection.rollback()
                    throw LogError(error, file.path)
                }
                return nil
            } catch {
                return error
            }
        }
    }

    private func insert(_ group: ArraySlice<LogWriter.Job>) throws(SQLiteError) {
        try begin.run()
        var partition: Int?
        for row in rows[..<rowCount] {
            let statements = try statements(row.partition)
            if row.partition != partition {
                // Read in every transaction, because another process may have written since the last one.
                partition = row.partition
                let last = try statements.last.step() ? statements.last.integer(0) : .none
                statements.last.reset()
                guard last < largestInteger else { throw .corrupt("found a row that ends with seq \(last)") }
                next[row.partition] = last + 1
            }
            let last = next[row.partition] + Seq(row.count) - 1
            statements.insert.bind(1, last)
            statements.insert.bind(2, Int64(row.count))
            statements.insert.bind(3, lending: row.end(last))
            try statements.insert.run()
            next[row.partition] = last + 1
        }
        for case .announce(let node, _) in group {
            NodeTable.bind(node, to: putNode)
            try putNode.run()
            clampNodes.bind(1, WallClock.nowMs())
            try clampNodes.run()
            forgetNodes.bind(1, NodeAnnouncement.oldestMs())
            try forgetNodes.run()
            try boundNodes.run()
        }
        try end.run()
    }

    private func statements(_ partition: Int) throws(SQLiteError) -> PartitionStatements {
        if let statements = partitions[partition] { return statements }
        let table = file.table(partition)
        let statements = PartitionStatements(
            last: try connection.prepare("SELECT last FROM \(table) ORDER BY last DESC LIMIT 1"),
            insert: try connection.prepare("INSERT INTO \(table) VALUES (?1, ?2, ?3)")
        )
        partitions[partition] = statements
        return statements
    }

    // MARK: After the transaction

    private func answer(_ group: ArraySlice<LogWriter.Job>, _ error: LogError?) {
        if let error {
            for job in group { job.fail(error) }
            return
        }
        // `next` is after the group's records here, so it is set back to the first of them.
        for row in rows[..<rowCount] { next[row.partition] -= Seq(row.count) }
        for job in group {
            switch job {
            case .append(let partition, let records, let done):
                let first = next[partition]
                next[partition] += Seq(records.count)
                done(.success(Array(first..<next[partition])))
            case .announce(_, let done):
                done(.success(()))
            }
        }
    }

    private func copyBack() {
        guard let effort = checkpoint.next(walFrames: connection.walFrames) else { return }
        // A failed checkpoint loses nothing: the WAL keeps its content, and a later checkpoint copies it.
        _ = file.lock.whileHeld { try? connection.checkpoint(effort) }
    }
}
