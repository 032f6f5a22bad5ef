import ReelCore
import ReelSQLite

/// What a partition's file says of itself: the rows of `meta`, each compared with its hash. All of them are read, so
/// that a row whose name is damaged is found as well.
struct StoredMeta {
    private var values: [String: Int64] = [:]
    /// False for a file of format 3, whose rows have no hashes.
    let isHashed: Bool

    init(reading connection: Connection) throws {
        let rows: Statement
        do throws(SQLiteError) {
            rows = try connection.prepare("SELECT name, value, hash FROM meta")
            isHashed = true
        } catch {
            // The column is missing. Any other error is met again.
            rows = try connection.prepare("SELECT name, value FROM meta")
            isHashed = false
        }
        while try rows.step() {
            if isHashed {
                try StoredRow.check(StoredRow.meta(rows.bytes(0), rows.integer(1)), rows, 2, "of `meta`")
            }
            values[rows.text(0)] = rows.integer(1)
        }
    }

    /// The form of the file's rows; 0: no row says it.
    var format: Int64 { values["format"] ?? 0 }

    /// The value of this name; nil: there is none.
    subscript(name: String) -> Int64? { values[name] }
}
