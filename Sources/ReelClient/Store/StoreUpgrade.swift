internal import ReelCore
internal import ReelSQLite

/// Reads a store of format 1 to 3, which had a table for each kind of data. The queue, the sites, the user and the
/// deployment are kept. Received data is read again from a node.
struct StoreUpgrade {
    private let connection: Connection
    private let format: Int64
    private var changes = StorageChanges()

    /// Returns the pairs that replace the tables of a store.
    ///
    /// - Parameters:
    ///   - connection: the store, inside a transaction.
    ///   - format: the format of the tables, 1 to 3.
    /// - Throws: `SQLiteError` of kind `corrupt` for rows that no client has written. Another `SQLiteError` if the
    ///   tables cannot be read.
    static func pairs(of connection: Connection, format: Int64) throws(SQLiteError) -> StorageChanges {
        var upgrade = StoreUpgrade(connection: connection, format: format)
        let queued = try upgrade.addEntries()
        let (count, nextNumber) = try upgrade.addStreams(queued)
        try upgrade.addClient(streams: count, nextNumber: nextNumber)
        return upgrade.changes
    }

    private init(connection: Connection, format: Int64) {
        (self.connection, self.format) = (connection, format)
    }

    /// True if each row has a hash.
    private var hasHashes: Bool { format >= 3 }

    private mutating func addClient(streams: Int, nextNumber: Int64) throws(SQLiteError) {
        var client = DeviceStore.ClientRow()
        (client.streams, client.nextNumber) = (streams, nextNumber)
        if format == 1 {
            client.logNumber = Int(try connection.integer("SELECT ifnull(max(number), 0) FROM log") ?? 0)
        } else {
            let select = try connection.prepare(
                "SELECT number, user, deployment\(hasHashes ? ", hash" : "") FROM client WHERE row = 1"
            )
            defer { select.reset() }
            guard try select.step() else { throw Self.damaged("client", "no row") }
            let (number, user, text) = (select.integer(0), select.optionalText(1), select.optionalText(2))
            client.logNumber = Int(number)
            client.user = user
            client.deployment = text.flatMap { Deployment($0) }
            let isRight =
                !hasHashes || select.integer(3) == StoreRowHash.client(number: number, user: user, deployment: text)
            guard isRight, (text == nil) == (client.deployment == nil) else {
                throw Self.damaged("client", "\(number)")
            }
        }
        guard (0...Int(largestInteger)).contains(client.logNumber) else { throw Self.damaged("client", "a log number") }
        changes.seal(client.content, for: StoreKey.client)
    }

    /// Adds the streams with the lengths of their queues. Returns the number of streams, and a number that none of them
    /// has.
    private mutating func addStreams(_ queued: [Int64: Int]) throws(SQLiteError) -> (count: Int, nextNumber: Int64) {
        let select = try connection.prepare(
            "SELECT row, name, site, next_op, epoch\(hasHashes ? ", site_hash" : "") FROM stream"
        )
        defer { select.reset() }
        var (count, nextNumber): (Int, Int64) = (0, 1)
        while try select.step() {
            let (row, name, text, nextOp) = (select.integer(0), select.text(1), select.text(2), select.integer(3))
            guard let stream = StreamName(name), let site = Site(text), (0...largestInteger).contains(nextOp), row > 0,
                !hasHashes || select.integer(5) == StoreRowHash.site(of: name, text, nextOp: nextOp)
            else { throw Self.damaged("stream", name) }
            let known = StreamRow(row: row, site: site, nextOp: nextOp, queued: queued[row] ?? 0)
            changes.seal(known.content, for: StoreKey.stream(stream))
            count += 1
            if let epoch = select.optionalText(4).flatMap({ Epoch($0) }) {
                changes.seal(PositionRow(epoch: epoch, position: nil).content, for: StoreKey.position(row))
            }
            nextNumber = max(nextNumber, row + 1)
        }
        return (count, nextNumber)
    }

    /// Adds the queues, and returns their lengths by the numbers of their streams.
    private mutating func addEntries() throws(SQLiteError) -> [Int64: Int] {
        let names = format == 1 ? EntryColumns.format1Names : EntryColumns.names
        let select = try connection.prepare("SELECT stream, \(names)\(hasHashes ? ", hash" : "") FROM outbox")
        defer { select.reset() }
        var queued: [Int64: Int] = [:]
        while try select.step() {
            let row = select.integer(0)
            let columns = EntryColumns(select, from: 1, isOfFormat1: format == 1)
            guard !hasHashes || select.integer(9) == StoreRowHash.entry(row, columns), let entry = columns.entry else {
                throw Self.damaged("outbox", "\(columns.number), \(String(decoding: columns.event, as: UTF8.self))")
            }
            changes.seal(entry.content, for: StoreKey.entry(row, entry.number))
            queued[row, default: 0] += 1
        }
        return queued
    }

    private static func damaged(_ table: String, _ found: String) -> SQLiteError {
        .corrupt("found \(found.prefix(80).debugDescription) in table \(table)")
    }
}
