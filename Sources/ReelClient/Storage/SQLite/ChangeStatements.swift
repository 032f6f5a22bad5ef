internal import ReelSQLite

/// The statements that apply changes to table `pair`.
struct ChangeStatements {
    private let put: Statement
    private let remove: Statement
    private let removeRange: Statement

    /// Prepares the statements.
    init(_ connection: Connection) throws(SQLiteError) {
        put = try connection.prepare("INSERT OR REPLACE INTO pair VALUES (?, ?)")
        remove = try connection.prepare("DELETE FROM pair WHERE key = ?")
        removeRange = try connection.prepare("DELETE FROM pair WHERE key >= ? AND key < ?")
    }

    /// Applies all changes in order. Call it inside a transaction.
    func apply(_ changes: StorageChanges) throws(SQLiteError) {
        for change in changes.changes {
            switch change {
            case .put(let key, let value): try put.run(with: key, value)
            case .remove(let key): try remove.run(with: key)
            case .removeRange(let start, let end): try removeRange.run(with: start, end)
            }
        }
    }
}

extension Statement {
    /// Runs the statement with two blobs, which are not copied.
    fileprivate func run(with first: [UInt8], _ second: [UInt8]) throws(SQLiteError) {
        try first.withUnsafeBufferPointer { first throws(SQLiteError) in
            try second.withUnsafeBufferPointer { second throws(SQLiteError) in
                bind(1, lending: UnsafeRawBufferPointer(first))
                bind(2, lending: UnsafeRawBufferPointer(second))
                try run()
            }
        }
    }

    /// Runs the statement with one blob, which is not copied.
    fileprivate func run(with blob: [UInt8]) throws(SQLiteError) {
        try blob.withUnsafeBufferPointer { blob throws(SQLiteError) in
            bind(1, lending: UnsafeRawBufferPointer(blob))
            try run()
        }
    }
}
