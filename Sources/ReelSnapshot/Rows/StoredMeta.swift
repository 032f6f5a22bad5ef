import ReelCore
import ReelSQLite

/// The rows of the table `meta` of a partition's file, each compared with its hash. All rows are read, so that a row
/// with a damaged name is detected as well.
struct StoredMeta {
    private var values: [String: Int64] = [:]
    /// False for a file of format 3, which has no hashes of rows.
    let isHashed: Bool

    init(reading connection: Connection) throws {
        let rows: Statement
        do throws(SQLiteError) {
            rows = try connection.prepare("SELECT name, value, hash FROM meta")
            isHashed = true
        } catch {
            // The column is missing. The next statement repeats any other error.
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

    /// The format of the file's rows; 0: no row contains it.
    var format: Int64 { values["format"] ?? 0 }

    /// Returns the value of this name; nil: there is none.
    subscript(name: String) -> Int64? { values[name] }
}
