internal import ReelCore
internal import ReelSQLite

// The streams of a device, with their sites and the queues of own events.
extension DeviceStore {
    /// The stored data of a stream.
    struct Stored {
        var row: Int64
        var site: Site
        var nextOp: Op
        var entries: [Outbox.Entry]
        /// The epoch of the bases of the entries; nil: no log was met yet.
        var epoch: Epoch?
        /// True if something was received of the stream.
        var holdsState = false
        /// The position up to which the stream was received; nil if it cannot be read.
        var position: Position?
    }

    /// Returns the stored data of a stream. A stream that the file does not know begins with `newSite`.
    func open(_ stream: StreamName, newSite: Site) throws(ReelError) -> Stored {
        if let stored = try find(stream) { return stored }
        let (name, site) = (stream.description, newSite.description)
        try commit(durably: true) { () throws(SQLiteError) in
            putStream.bind(1, name)
            putStream.bind(2, site)
            putStream.bind(3, 0 as Int64)
            putStream.bind(4, StoreRowHash.site(of: name, site, nextOp: 0))
            try putStream.run()
        }
        return Stored(row: connection.lastInsertedRow, site: newSite, nextOp: 0, entries: [])
    }

    /// Throws `corrupt` if a stream's row has lost its name, or if the index of names hides the row of this stream. A
    /// new row would replace such a row, and its queue could not be found.
    private func checkThatNoneIsHidden(_ stream: StreamName) throws(SQLiteError) {
        let select = try connection.prepare("SELECT name, site, next_op, site_hash FROM stream NOT INDEXED")
        defer { select.reset() }
        while try select.step() {
            let hash = StoreRowHash.site(of: select.text(0), select.text(1), nextOp: select.integer(2))
            guard select.integer(3) == hash, select.text(0) != stream.description else {
                throw Self.damaged("stream", select.text(0))
            }
        }
    }

    /// Reads the row of a stream; nil if the file does not know the stream.
    private func find(_ stream: StreamName) throws(ReelError) -> Stored? {
        do throws(SQLiteError) {
            let select = try connection.prepare(
                """
                SELECT row, site, next_op, epoch, partition, partitions, covered, state_seq, complete, site_hash,
                    position_hash FROM stream WHERE name = ?
                """
            )
            select.bind(1, stream.description)
            guard try select.step() else {
                try checkThatNoneIsHidden(stream)
                return nil
            }
            defer { select.reset() }
            let (row, nextOp) = (select.integer(0), select.integer(2))
            guard let site = Site(select.text(1)), (0...largestInteger).contains(nextOp),
                select.integer(9) == StoreRowHash.site(of: stream.description, select.text(1), nextOp: nextOp)
            else {
                throw Self.damaged("stream", "\(select.text(1)), \(nextOp)")
            }
            return Stored(
                row: row,
                site: site,
                nextOp: nextOp,
                entries: try entries(of: row),
                epoch: Epoch(select.text(3)),
                holdsState: !select.isNull(6) || !select.isNull(7),
                position: Self.position(of: stream, select)
            )
        } catch {
            throw ReelError(error, stream.description)
        }
    }

    /// Returns the position in columns 3 to 6 and 8 of a stream's row. Returns nil if there is none, or one that no
    /// client writes.
    private static func position(of stream: StreamName, _ row: Statement) -> Position? {
        guard let epoch = Epoch(row.text(3)), !row.isNull(6), let covered = SeqRanges(stored: row.text(6)) else {
            return nil
        }
        let hash = StoreRowHash.position(
            row.integer(0),
            epoch: row.text(3),
            partition: row.integer(4),
            partitions: row.integer(5),
            covered: row.text(6),
            complete: row.integer(8)
        )
        guard row.integer(10) == hash else { return nil }
        let (partition, partitions) = (Int(row.integer(4)), Int(row.integer(5)))
        guard partitions > 0, partition == stream.partition(of: partitions) else { return nil }
        return Position(
            epoch: epoch,
            partition: partition,
            partitions: partitions,
            covered: covered,
            isComplete: row.integer(8) != 0
        )
    }

    /// Reads a page of a stream's queue.
    ///
    /// - Parameters:
    ///   - number: the entries after this number are read.
    ///   - limit: the maximum number of entries.
    ///   - bytes: the number of bytes of events after which the page ends.
    /// - Returns: The entries, and the epoch of their bases if it is known.
    func entries(
        of stream: StreamName,
        after number: Int64,
        limit: Int,
        bytes: Int
    ) throws(ReelError) -> (entries: [Outbox.Entry], epoch: Epoch?) {
        do throws(SQLiteError) {
            let select = try connection.prepare("SELECT row, epoch FROM stream WHERE name = ?")
            select.bind(1, stream.description)
            guard try select.step() else { return ([], nil) }
            defer { select.reset() }
            let page = try entries(of: select.integer(0), after: number, limit: limit, bytes: bytes)
            return (page, Epoch(select.text(1)))
        } catch {
            throw ReelError(error, stream.description)
        }
    }

    private func entries(
        of row: Int64,
        after number: Int64 = .min,
        limit: Int = .max,
        bytes: Int = .max
    ) throws(SQLiteError) -> [Outbox.Entry] {
        var entries: [Outbox.Entry] = []
        var size = 0
        let select = try connection.prepare(
            """
            SELECT \(EntryColumns.names), hash FROM outbox WHERE stream = ? AND number > ? ORDER BY number
            """
        )
        select.bind(1, row)
        select.bind(2, number)
        defer { select.reset() }
        while entries.count < limit, size < bytes, try select.step() {
            let columns = EntryColumns(select, from: 0)
            size += columns.event.count
            guard select.integer(8) == StoreRowHash.entry(row, columns), let entry = Self.entry(columns) else {
                throw Self.damaged(columns)
            }
            entries.append(entry)
        }
        return entries
    }

    /// Returns the entry of a row; nil if the row holds values that no client writes.
    private static func entry(_ row: EntryColumns) -> Outbox.Entry? {
        var base = Seq.none
        guard let event = row.event.withUnsafeBytes({ Event(encoded: $0, base: &base) }), base >= .none,
            (1...largestInteger).contains(row.number)
        else { return nil }
        var entry = Outbox.Entry(number: row.number, event: event, base: base)
        if row.site != nil || row.op != nil {
            guard let site = row.site.flatMap({ Site($0) }), let op = row.op, (0...largestInteger).contains(op) else {
                return nil
            }
            entry.author = .init(site: site, op: op)
        }
        if row.firstEpoch != nil || row.firstSeq != nil {
            guard let epoch = row.firstEpoch.flatMap({ Epoch($0) }), let seq = row.firstSeq,
                (Seq.none...largestInteger).contains(seq)
            else { return nil }
            entry.firstSent = .init(epoch: epoch, seq: seq)
        }
        guard let held = numbers(row.known ?? "") else { return nil }
        entry.held = held.map { Int($0) }
        if let text = row.waits {
            guard let waits = numbers(text) else { return nil }
            entry.waits = waits
        }
        return entry
    }

    /// Returns the numbers of a comma-separated list; nil if the text is no such list.
    private static func numbers(_ text: String) -> [Int64]? {
        let parts = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int64($0) }.filter { (0...largestInteger).contains($0) }
        return numbers.count == parts.count ? numbers : nil
    }

    /// Forgets, in the queues of all streams, which objects the device has held. Call it inside `commit`.
    func forgetHeld() throws(SQLiteError) {
        try Self.rehashEntries(of: connection, where: "known IS NOT NULL") { row, columns, hash throws(SQLiteError) in
            guard hash == StoreRowHash.entry(row, columns) else { throw Self.damaged(columns) }
            columns.known = nil
        }
    }

    /// Rewrites the columns `known` and `hash` of the queued entries that match a condition. `change` is called with
    /// the stream's row, the columns and the stored hash of each entry; it may change `known`, and throws to stop.
    static func rehashEntries(
        of connection: Connection,
        where condition: String,
        _ change: (Int64, inout EntryColumns, Int64) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        let select = try connection.prepare(
            "SELECT stream, \(EntryColumns.names), hash FROM outbox WHERE \(condition)"
        )
        var rows: [(stream: Int64, number: Int64, known: String?, hash: Int64)] = []
        while try select.step() {
            let stream = select.integer(0)
            var columns = EntryColumns(select, from: 1)
            try change(stream, &columns, select.integer(9))
            rows.append((stream, columns.number, columns.known, StoreRowHash.entry(stream, columns)))
        }
        let update = try connection.prepare("UPDATE outbox SET known = ?, hash = ? WHERE stream = ? AND number = ?")
        for row in rows {
            update.bind(1, row.known)
            update.bind(2, row.hash)
            update.bind(3, row.stream)
            update.bind(4, row.number)
            try update.run()
        }
    }

    private static func damaged(_ entry: EntryColumns) -> SQLiteError {
        damaged("outbox", "\(entry.number), \(String(decoding: entry.event, as: UTF8.self))")
    }

    /// Writes changes of the queue. Call it inside `commit`.
    func write(_ writes: [Outbox.Write], of stream: StreamName, _ row: Int64) throws(SQLiteError) {
        for write in writes {
            switch write {
            case .put(let entry):
                let columns = EntryColumns(entry)
                putEntry.bind(1, row)
                putEntry.bind(2, columns.number)
                putEntry.bind(3, columns.event)
                putEntry.bind(4, columns.site)
                putEntry.bind(5, columns.op)
                putEntry.bind(6, columns.firstEpoch)
                putEntry.bind(7, columns.firstSeq)
                putEntry.bind(8, columns.known)
                putEntry.bind(9, columns.waits)
                putEntry.bind(10, StoreRowHash.entry(row, columns))
                try putEntry.run()
            case .remove(let number, _):
                removeEntry.bind(1, row)
                removeEntry.bind(2, number)
                try removeEntry.run()
            case .site(let site, let next):
                putSite.bind(1, site.description)
                putSite.bind(2, next)
                putSite.bind(3, StoreRowHash.site(of: stream.description, site.description, nextOp: next))
                putSite.bind(4, row)
                try putSite.run()
            }
        }
    }
}
