internal import CSQLite

/// Why SQLite could not do what it was asked for.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What the caller can do about it.
    public enum Kind: Sendable {
        /// No room on the disk: nothing was written; it works again when there is room.
        case full
        /// The file is damaged: put it aside, never delete it.
        case corrupt
        /// The file is no SQLite database.
        case notADatabase
        /// Somebody else holds a lock for longer than the busy time: try again.
        case locked
        /// The call was interrupted.
        case interrupted
        /// The file cannot be opened, or no further one (descriptors).
        case cannotOpen
        /// The file or its folder can only be read.
        case readOnly
        /// The disk reports an error.
        case inputOutput
        /// A UNIQUE, NOT NULL or CHECK rule does not hold.
        case constraint
        /// Anything else: a mistake in the statement, or memory.
        case other
    }

    /// What the caller can do about it.
    public var kind: Kind
    /// SQLite's primary result code.
    public var code: Int32
    /// SQLite's extended result code.
    public var extendedCode: Int32
    /// SQLite's words, behind what was being done.
    public var message: String

    /// The error of an extended result code.
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

    /// Damage that SQLite itself does not see.
    public static func corrupt(_ message: String) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_CORRUPT, message: message)
    }

    /// A database that is not the one that was expected.
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

    /// The message, and SQLite's number for those who look it up.
    public var description: String { "\(message) (SQLite \(extendedCode))" }
}
