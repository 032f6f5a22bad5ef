internal import CSQLite

/// An error of SQLite.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The class of an error, by what the caller can do about it.
    public enum Kind: Sendable {
        /// The disk is full: nothing was written. Writes succeed again once there is space.
        case full
        /// The file is damaged: move it aside, never delete it.
        case corrupt
        /// The file is not an SQLite database.
        case notADatabase
        /// Another connection has held a lock for longer than the busy time: try again.
        case locked
        /// The call was interrupted.
        case interrupted
        /// The file cannot be opened, or the process has no descriptors left.
        case cannotOpen
        /// The file or its folder is read-only.
        case readOnly
        /// The disk reports an error.
        case inputOutput
        /// A UNIQUE, NOT NULL or CHECK constraint is violated.
        case constraint
        /// Any other error: a mistake in the statement, or no memory.
        case other
    }

    /// The class of the error.
    public var kind: Kind
    /// SQLite's primary result code.
    public var code: Int32
    /// SQLite's extended result code.
    public var extendedCode: Int32
    /// The failed action, followed by SQLite's text.
    public var message: String

    /// Creates an error from an extended result code.
    public init(extendedCode: Int32, message: String) {
        self.code = extendedCode & 0xff
        self.extendedCode = extendedCode
        self.message = message
        kind =
            switch extendedCode & 0xff {
            case SQLITE_FULL: .full
            case SQLITE_CORRUPT: .corrupt
            case SQLITE_NOTADB: .notADatabase
            case SQLITE_BUSY, SQLITE_LOCKED: .locked
            case SQLITE_INTERRUPT: .interrupted
            case SQLITE_CANTOPEN: .cannotOpen
            case SQLITE_READONLY, SQLITE_PERM: .readOnly
            case SQLITE_IOERR: .inputOutput
            case SQLITE_CONSTRAINT: .constraint
            default: .other
            }
    }

    /// Returns an error for damage that SQLite itself does not detect.
    public static func corrupt(_ message: String) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_CORRUPT, message: message)
    }

    /// Returns an error for a database that is not the expected one.
    public static func notADatabase(_ message: String) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_NOTADB, message: message)
    }

    init(_ database: OpaquePointer?, _ doing: @autoclosure () -> String) {
        guard let database else {
            self.init(extendedCode: SQLITE_NOMEM, message: "\(doing()): out of memory")
            return
        }
        self.init(
            extendedCode: sqlite3_extended_errcode(database),
            message: "\(doing()): \(String(cString: sqlite3_errmsg(database)))"
        )
    }

    /// The message, followed by SQLite's error number.
    public var description: String { "\(message) (SQLite \(extendedCode))" }
}
