internal import CSQLite

/// A prepared statement. Columns count from 0, parameters from 1, as in SQLite. A step allocates nothing, and the bytes
/// of a column are valid until the next step.
public final class Statement {
    private let connection: Connection
    private let handle: OpaquePointer
    /// The error of the first parameter that could not be bound; the next step throws it.
    private var bindResult = SQLITE_OK

    init(_ connection: Connection, _ sql: String) throws(SQLiteError) {
        var prepared: OpaquePointer?
        let result = sqlite3_prepare_v3(
            connection.handle,
            sql,
            -1,
            UInt32(SQLITE_PREPARE_PERSISTENT),
            &prepared,
            nil
        )
        guard result == SQLITE_OK, let prepared else { throw SQLiteError(connection.handle, sql) }
        self.connection = connection
        handle = prepared
    }

    deinit {
        sqlite3_finalize(handle)
    }

    // MARK: Running

    /// Steps to the next row and returns true if there is one. At the end and on an error the statement is reset.
    public func step() throws(SQLiteError) -> Bool {
        guard bindResult == SQLITE_OK else {
            let result = bindResult
            bindResult = SQLITE_OK
            sqlite3_reset(handle)
            throw SQLiteError(
                extendedCode: result,
                message: "bind: \(String(cString: sqlite3_errstr(result)))"
            )
        }
        switch sqlite3_step(handle) {
        case SQLITE_ROW:
            return true
        case SQLITE_DONE:
            sqlite3_reset(handle)
            return false
        default:
            let error = SQLiteError(connection.handle, String(cString: sqlite3_sql(handle)))
            sqlite3_reset(handle)
            throw error
        }
    }

    /// Steps to the end and drops the rows.
    public func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Ends the run before its last row and releases its locks. Bound values stay bound.
    public func reset() {
        sqlite3_reset(handle)
    }

    // MARK: Parameters

    /// Binds an integer.
    public func bind(_ index: Int32, _ value: Int64) {
        bound(sqlite3_bind_int64(handle, index, value))
    }

    /// Binds an integer; nil is NULL.
    public func bind(_ index: Int32, _ value: Int64?) {
        guard let value else { return bindNull(index) }
        bind(index, value)
    }

    /// Binds a floating-point number.
    public func bind(_ index: Int32, _ value: Double) {
        bound(sqlite3_bind_double(handle, index, value))
    }

    /// Binds text, which is copied; nil is NULL.
    public func bind(_ index: Int32, _ value: String?) {
        guard var value else { return bindNull(index) }
        value.withUTF8 { bind(index, textCopying: UnsafeRawBufferPointer($0)) }
    }

    /// Binds a blob, which is copied.
    public func bind(_ index: Int32, _ value: [UInt8]) {
        value.withUnsafeBytes { bind(index, copying: $0) }
    }

    /// Binds a blob, which is copied.
    public func bind(_ index: Int32, copying bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, let count = Int32(exactly: bytes.count) else {
            return bindEmpty(index, bytes.count)
        }
        bound(reel_sqlite3_bind_blob_copy(handle, index, base, count))
    }

    /// Binds UTF-8 text, which is copied.
    public func bind(_ index: Int32, textCopying bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, let count = Int32(exactly: bytes.count) else {
            bound(reel_sqlite3_bind_text_copy(handle, index, "", 0))
            return
        }
        bound(reel_sqlite3_bind_text_copy(handle, index, base.assumingMemoryBound(to: CChar.self), count))
    }

    /// Binds a blob without a copy: the bytes must stay valid until the parameter is bound again or the run has ended.
    public func bind(_ index: Int32, lending bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, let count = Int32(exactly: bytes.count) else {
            return bindEmpty(index, bytes.count)
        }
        bound(sqlite3_bind_blob(handle, index, base, count, nil))
    }

    /// Binds UTF-8 text without a copy: the bytes must stay valid until the parameter is bound again or the run has
    /// ended.
    public func bind(_ index: Int32, textLending bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, let count = Int32(exactly: bytes.count) else {
            bound(reel_sqlite3_bind_text_copy(handle, index, "", 0))
            return
        }
        bound(sqlite3_bind_text(handle, index, base.assumingMemoryBound(to: CChar.self), count, nil))
    }

    /// Binds NULL.
    public func bindNull(_ index: Int32) {
        bound(sqlite3_bind_null(handle, index))
    }

    private func bound(_ result: Int32) {
        if bindResult == SQLITE_OK { bindResult = result }
    }

    private func bindEmpty(_ index: Int32, _ count: Int) {
        // SQLite itself refuses a value that is too long, at the step.
        bound(sqlite3_bind_zeroblob64(handle, index, UInt64(count)))
    }

    // MARK: Columns

    /// Returns true if the column is NULL.
    public func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    /// Returns true if the column is a blob.
    public func isBlob(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_BLOB
    }

    /// Returns the column as an integer.
    public func integer(_ column: Int32) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    /// Returns the column as a floating-point number.
    public func double(_ column: Int32) -> Double {
        sqlite3_column_double(handle, column)
    }

    /// Returns the bytes of a blob or text column in SQLite's memory. They are valid until the next step, reset or
    /// bind.
    public func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let base = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    /// Returns the column as a string, copied.
    public func text(_ column: Int32) -> String {
        String(decoding: bytes(column), as: UTF8.self)
    }

    /// Returns the column as a string, copied; nil for NULL.
    public func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    /// Returns the column as an integer; nil for NULL.
    public func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    /// Returns the bytes of the column, copied.
    public func array(_ column: Int32) -> [UInt8] {
        Array(bytes(column))
    }
}

@available(*, unavailable)
extension Statement: Sendable {}
