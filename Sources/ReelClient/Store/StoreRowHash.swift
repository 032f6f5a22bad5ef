internal import ReelCore
internal import ReelSQLite

/// The hash that a row of the store carries: of its columns, with the function of the digest's lines. A reader that
/// finds another one has found a row that nobody wrote.
struct StoreRowHash {
    private var hash = FNV1a()

    /// What stands in the row.
    var stored: Int64 { Int64(bitPattern: hash.finished) }

    private mutating func add(_ value: Int64?) {
        hash.add(value == nil ? 0 : 1)
        withUnsafeBytes(of: (value ?? 0).littleEndian) { hash.add($0) }
    }

    private mutating func add(_ bytes: Bytes) {
        add(Int64(bytes.count))
        hash.add(bytes)
    }

    private mutating func add(_ text: String?) {
        guard var text else { return add(nil as Int64?) }
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    // MARK: The tables

    /// A row of `client`.
    static func client(number: Int64, user: String?, deployment: String?) -> Int64 {
        var hash = StoreRowHash()
        hash.add(number)
        hash.add(user)
        hash.add(deployment)
        return hash.stored
    }

    /// In a row of `stream`: the site and the ops that it was given.
    static func site(of stream: String, _ site: String, nextOp: Int64) -> Int64 {
        var hash = StoreRowHash()
        hash.add(stream)
        hash.add(site)
        hash.add(nextOp)
        return hash.stored
    }

    /// In a row of `stream`: how far it was received.
    static func position(
        _ row: Int64,
        epoch: String,
        partition: Int64,
        partitions: Int64,
        covered: String,
        complete: Int64
    ) -> Int64 {
        var hash = StoreRowHash()
        hash.add(row)
        hash.add(epoch)
        hash.add(partition)
        hash.add(partitions)
        hash.add(covered)
        hash.add(complete)
        return hash.stored
    }

    /// In a row of `stream`: the folded state.
    static func state(_ row: Int64, seq: Int64, digest: Int64, head: Bytes) -> Int64 {
        var hash = StoreRowHash()
        hash.add(row)
        hash.add(seq)
        hash.add(digest)
        hash.add(head)
        return hash.stored
    }

    /// A row of `object` or of `site`.
    static func part(of row: Int64, key: Bytes, value: Bytes) -> Int64 {
        var hash = StoreRowHash()
        hash.add(row)
        hash.add(key)
        hash.add(value)
        return hash.stored
    }

    /// A row of `event`.
    static func event(_ row: Int64, seq: Int64, value: Bytes) -> Int64 {
        withUnsafeBytes(of: seq.littleEndian) { part(of: row, key: $0, value: value) }
    }

    /// A row of `outbox`.
    static func entry(_ row: Int64, _ columns: EntryColumns) -> Int64 {
        var hash = StoreRowHash()
        hash.add(row)
        hash.add(columns.number)
        columns.event.withUnsafeBytes { hash.add($0) }
        hash.add(columns.site)
        hash.add(columns.op)
        hash.add(columns.firstEpoch)
        hash.add(columns.firstSeq)
        hash.add(columns.known)
        hash.add(columns.waits)
        return hash.stored
    }
}

/// A row of `outbox`, behind its stream.
struct EntryColumns {
    /// As they stand in a SELECT, in this order.
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

    /// Reads the columns `names`, from this one on.
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

extension Statement {
    /// The text of a column; nil for NULL.
    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    /// The integer of a column; nil for NULL.
    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    /// Binds an integer; nil is NULL.
    func bind(_ index: Int32, _ value: Int64?) {
        if let value { bind(index, value) } else { bindNull(index) }
    }
}
