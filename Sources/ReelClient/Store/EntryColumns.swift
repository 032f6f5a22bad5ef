internal import ReelCore
internal import ReelSQLite

/// The columns of a row of `outbox` in a store of format 1 to 3, without `stream` and `hash`.
struct EntryColumns {
    /// The names of the columns for a SELECT, in the order in which they are read.
    static let names = "number, event, site, op, first_epoch, first_seq, known, waits"
    /// Those of format 1.
    static let format1Names = "number, event, site, op"

    var number: Int64
    var event: [UInt8]
    var site: String?
    var op: Int64?
    var firstEpoch: String?
    var firstSeq: Int64?
    var known: String?
    var waits: String?

    /// Reads the columns of a row.
    ///
    /// - Parameters:
    ///   - row: a row with the columns that `names` lists.
    ///   - first: the index of the first of them.
    ///   - isOfFormat1: true if the row has only the columns that `format1Names` lists.
    init(_ row: Statement, from first: Int32, isOfFormat1: Bool) {
        number = row.integer(first)
        event = row.array(first + 1)
        site = row.optionalText(first + 2)
        op = row.optionalInteger(first + 3)
        if isOfFormat1 { return }
        firstEpoch = row.optionalText(first + 4)
        firstSeq = row.optionalInteger(first + 5)
        known = row.optionalText(first + 6)
        waits = row.optionalText(first + 7)
    }

    /// The entry; nil if the row holds values that no client writes.
    var entry: Outbox.Entry? {
        var base = Seq.none
        guard let event = event.withUnsafeBytes({ SyncEvent(encoded: $0, base: &base) }), base >= .none,
            (1...largestInteger).contains(number)
        else { return nil }
        var entry = Outbox.Entry(number: number, event: event, base: base)
        if site != nil || op != nil {
            guard let site = site.flatMap({ Site($0) }), let op, (0...largestInteger).contains(op) else { return nil }
            entry.author = .init(site: site, op: op)
        }
        if firstEpoch != nil || firstSeq != nil {
            guard let epoch = firstEpoch.flatMap({ Epoch($0) }), let firstSeq,
                (Seq.none...largestInteger).contains(firstSeq)
            else { return nil }
            entry.firstSent = .init(epoch: epoch, seq: firstSeq)
        }
        guard let held = Self.numbers(known ?? "") else { return nil }
        entry.held = held.map { Int($0) }
        if let waits {
            guard let numbers = Self.numbers(waits) else { return nil }
            entry.waits = numbers
        }
        return entry
    }

    /// Returns the numbers of a comma-separated list; nil if the text is no such list.
    private static func numbers(_ text: String) -> [Int64]? {
        let parts = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int64($0) }.filter { (0...largestInteger).contains($0) }
        return numbers.count == parts.count ? numbers : nil
    }
}
