internal import ReelCore
internal import ReelSQLite

/// The columns of a row of `outbox`, without `stream` and `hash`.
struct EntryColumns {
    /// The names of the columns for a SELECT, in the order that `init(_:from:)` reads.
    static let names = "number, event, site, op, first_epoch, first_seq, known, waits"

    var number: Int64
    var event: [UInt8]
    var site: String?
    var op: Int64?
    var firstEpoch: String?
    var firstSeq: Int64?
    var known: String?
    var waits: String?

    init(_ entry: Outbox.Entry) {
        number = entry.number
        event = entry.event.encoded(base: entry.base)
        site = entry.author?.site.description
        op = entry.author?.op
        firstEpoch = entry.firstSent?.epoch.description
        firstSeq = entry.firstSent?.seq
        known = entry.held.isEmpty ? nil : entry.held.map(String.init).joined(separator: ",")
        waits = entry.waits?.map(String.init).joined(separator: ",")
    }

    /// Reads the columns `names` of a row, beginning with column `first`.
    init(_ row: Statement, from first: Int32) {
        number = row.integer(first)
        event = row.array(first + 1)
        site = row.optionalText(first + 2)
        op = row.optionalInteger(first + 3)
        firstEpoch = row.optionalText(first + 4)
        firstSeq = row.optionalInteger(first + 5)
        known = row.optionalText(first + 6)
        waits = row.optionalText(first + 7)
    }
}
