import ReelCore
import ReelSQLite

/// The row of an object or tombstone as the fold's source returns it. Here `StoredRow` names the hashes of rows.
typealias StoredObjectRow = ReelCore.StoredRow

// The rows of objects and tombstones. Keys have their stored form (`ObjectKey`).
extension SnapshotFile {
    /// The statements for rows of objects and tombstones.
    struct ObjectStatements {
        let put: Statement
        let delete: Statement
        /// The row at a key, or the next one.
        let find: Statement
        /// The row before a key.
        let findBefore: Statement
        /// The rows that the horizon will pass, after a seq and key.
        let aging: Statement
        /// The last of those rows before a seq and key.
        let agingBefore: Statement

        init(_ connection: Connection) throws(SQLiteError) {
            put = try connection.prepare(
                """
                INSERT INTO object VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (stream, key) DO UPDATE SET digest = excluded.digest, aging = excluded.aging,
                    data = excluded.data, hash = excluded.hash
                """
            )
            delete = try connection.prepare("DELETE FROM object WHERE stream = ? AND key = ?")
            let select = "SELECT \(StoredRow.objectColumns) FROM object WHERE (stream, key)"
            find = try connection.prepare("\(select) >= (?, ?) ORDER BY stream, key LIMIT 1")
            findBefore = try connection.prepare("\(select) < (?, ?) ORDER BY stream DESC, key DESC LIMIT 1")
            let index = "FROM object INDEXED BY object_by_aging WHERE aging IS NOT NULL AND (stream, aging, key)"
            aging = try connection.prepare(
                "SELECT stream, aging, key \(index) > (?, ?, ?) ORDER BY stream, aging, key LIMIT ?"
            )
            agingBefore = try connection.prepare(
                """
                SELECT stream, aging, key \(index) < (?, ?, ?)
                ORDER BY stream DESC, aging DESC, key DESC LIMIT 1
                """
            )
        }
    }

    // MARK: Writing, inside a transaction

    /// Writes the row of an object or tombstone.
    func setObject(_ stream: Int64, key: [UInt8], data: Bytes, digest: UInt64, aging: Seq?) throws {
        let digest = Int64(bitPattern: digest)
        try key.withUnsafeBytes { key in
            objects.put.bind(1, stream)
            objects.put.bind(2, lending: key)
            objects.put.bind(3, digest)
            objects.put.bind(4, aging)
            objects.put.bind(5, lending: data)
            objects.put.bind(6, StoredRow.object(stream, key, digest: digest, aging: aging, data))
            try objects.put.run()
        }
    }

    /// Deletes the row of an object or tombstone, if there is one.
    func deleteObject(_ stream: Int64, key: [UInt8]) throws {
        objects.delete.bind(1, stream)
        objects.delete.bind(2, key)
        try objects.delete.run()
    }

    // MARK: Reading

    /// Begins the transaction that the fold will commit, unless it has begun. So not every read of a row takes and
    /// releases the locks of the file.
    private func beginFold() throws {
        if !connection.inTransaction { try connection.begin() }
    }

    /// Returns the row of an object or tombstone; nil: there is none.
    ///
    /// - Throws: `Unusable` if the row is damaged, or if a damaged row may have hidden it.
    func object(_ stream: Int64, key: [UInt8]) throws -> StoredObjectRow? {
        lookups += 1
        try beginFold()
        objects.find.bind(1, stream)
        objects.find.bind(2, key)
        defer { objects.find.reset() }
        if try objects.find.step() {
            let row = objects.find
            try StoredRow.checkObject(row)
            if row.integer(0) == stream, row.bytes(1).elementsEqual(key) {
                return StoredObjectRow(
                    bytes: row.array(4),
                    digest: UInt64(bitPattern: row.integer(2)),
                    agingSeq: row.optionalInteger(3)
                )
            }
        }
        objects.findBefore.bind(1, stream)
        objects.findBefore.bind(2, key)
        defer { objects.findBefore.reset() }
        if try objects.findBefore.step() { try StoredRow.checkObject(objects.findBefore) }
        return nil
    }

    /// Returns the keys of a stream's rows with an `agingSeq` up to a seq, in the order of these seqs.
    ///
    /// - Parameters:
    ///   - stream: The number of the stream.
    ///   - seq: The largest `agingSeq`.
    ///   - last: The last key of the previous page; nil for the first page.
    ///   - limit: The maximum number of keys.
    /// - Throws: `Unusable` if the index, or a row that it names, is damaged.
    func agingKeys(_ stream: Int64, upTo seq: Seq, after last: AgingKey?, limit: Int) throws -> [AgingKey] {
        try beginFold()
        let start = last ?? AgingKey(seq: .none, key: [])
        for statement in [objects.aging, objects.agingBefore] {
            statement.bind(1, stream)
            statement.bind(2, start.seq)
            statement.bind(3, start.key)
        }
        objects.aging.bind(4, Int64(limit))
        // A flipped byte in the index can hide entries. The search then ends next to the damaged entry, as in
        // `StoredRow.checkAbsence`.
        if last == nil {
            defer { objects.agingBefore.reset() }
            if try objects.agingBefore.step() { _ = try checkedAging(objects.agingBefore) }
        }
        var keys: [AgingKey] = []
        defer { objects.aging.reset() }
        while try objects.aging.step() {
            let aging = try checkedAging(objects.aging)
            guard objects.aging.integer(0) == stream, aging.seq <= seq else { break }
            keys.append(aging)
        }
        return keys
    }

    /// Returns an entry of the index by `agingSeq`, compared with its row.
    private func checkedAging(_ entry: Statement) throws -> AgingKey {
        let aging = AgingKey(seq: entry.integer(1), key: entry.array(2))
        guard try object(entry.integer(0), key: aging.key)?.agingSeq == aging.seq else {
            throw Unusable(reason: "the index of the objects that the horizon will pass is damaged")
        }
        return aging
    }
}
