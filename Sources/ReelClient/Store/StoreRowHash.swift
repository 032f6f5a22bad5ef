internal import ReelCore

/// The hash of a row in a store of format 3, in the row's column `hash`. It is FNV-1a of the other columns with
/// MurmurHash3's finalizer. A row with another hash is damaged.
struct StoreRowHash {
    private var hash = FNV1a()

    /// The hash as SQLite stores it.
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

    /// Returns the hash of a row of `client`.
    static func client(number: Int64, user: String?, deployment: String?) -> Int64 {
        var hash = StoreRowHash()
        hash.add(number)
        hash.add(user)
        hash.add(deployment)
        return hash.stored
    }

    /// Returns the column `site_hash` of `stream`, over name, site and next op.
    static func site(of stream: String, _ site: String, nextOp: Int64) -> Int64 {
        var hash = StoreRowHash()
        hash.add(stream)
        hash.add(site)
        hash.add(nextOp)
        return hash.stored
    }

    /// Returns the hash of a row of `outbox`.
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
