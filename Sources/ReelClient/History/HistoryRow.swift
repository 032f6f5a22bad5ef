internal import ReelCore

/// The stored part of a stream's history, without its rows of records.
struct HistoryRow: Equatable {
    /// The limits of a history. Beyond them the oldest rows are removed.
    static let (recordsMax, bytesMax): (Int, Int) = (65_536, 8 << 20)
    /// The maximum number of records in a row.
    static let recordsPerRow = 1_000

    /// The number that the history got when it began.
    var id: UInt64
    /// The number of the first row, and the tag of the row before it.
    var first: Int64 = 1
    var firstTag: UInt32 = 0
    /// The number of the next row, and the tag of the row before it.
    var next: Int64 = 1
    var nextTag: UInt32 = 0
    /// The number in the newest token that an app has got. After a restart it can be too low by
    /// `ChangeRecorder.askedMax`.
    var asked: Int64 = 1
    /// The number of records in all rows, and the bytes of the rows.
    var records = 0
    var bytes = 0

    /// The bits of a number that a row can hold.
    private static let idMask: UInt64 = (1 << 52) - 1

    /// Creates the history that begins now.
    ///
    /// - Parameter random: a random number, which tells it from every other history.
    init(random: UInt64) { id = random & Self.idMask }

    /// The token for the changes after the present end.
    var token: ChangeToken { ChangeToken(history: id, number: next, tag: nextTag) }

    /// True if the history can still answer for a token that an app has got.
    var isOfUse: Bool { asked >= first }

    init(_ content: Bytes) throws(ReelError) {
        var row = RowReader(content)
        id = UInt64(bitPattern: try row.number()) & Self.idMask
        (first, firstTag) = (try row.number(), UInt32(truncatingIfNeeded: try row.number()))
        (next, nextTag) = (try row.number(), UInt32(truncatingIfNeeded: try row.number()))
        asked = try row.number()
        (records, bytes) = (Int(clamping: try row.number()), Int(clamping: try row.number()))
        guard first > 0, next >= first, asked <= next, records >= 0, bytes >= 0 else {
            throw row.damaged("a history")
        }
        try row.end()
    }

    var content: [UInt8] {
        var row = RowWriter([])
        row.write(Int64(bitPattern: id))
        row.write(first)
        row.write(Int64(firstTag))
        row.write(next)
        row.write(Int64(nextTag))
        row.write(asked)
        row.write(Int64(records))
        row.write(Int64(bytes))
        return row.bytes
    }
}
