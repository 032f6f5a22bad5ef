internal import ReelCore
internal import ReelSQLite

// The streams of a device, with their sites and the queues of own events.
extension DeviceStore {
    /// What the file holds of a stream.
    struct Stored {
        var row: Int64
        var site: Site
        var nextOp: Op
        var entries: [Outbox.Entry]
        /// The epoch in which the bases of the entries count; nil: no log was met yet.
        var epoch: Epoch?
        /// Something was received of the stream.
        var holdsState = false
        /// How far it was received; nil where that cannot be read.
        var position: Position?
    }

    /// What the file holds of a stream; a stream that it does not know begins with this site.
    func open(_ stream: StreamName, newSite: Site) throws(ReelError) -> Stored {
        if let stored = try find(stream) { return stored }
        try commit(durably: true) { () throws(SQLiteError) in
            putStream.bind(1, stream.description)
            putStream.bind(2, newSite.description)
            putStream.bind(3, 0 as Int64)
            try putStream.run()
        }
        return Stored(row: connection.lastInsertedRow, site: newSite, nextOp: 0, entries: [])
    }

    private func find(_ stream: StreamName) throws(ReelError) -> Stored? {
        do throws(SQLiteError) {
            let select = try connection.prepare(
                """
                SELECT row, site, next_op, epoch, partition, partitions, covered, state_seq, complete FROM stream
                WHERE name = ?
                """
            )
            select.bind(1, stream.description)
            guard try select.step() else { return nil }
            defer { select.reset() }
            let (row, nextOp) = (select.integer(0), select.integer(2))
            guard let site = Site(select.text(1)), (0...largestInteger).contains(nextOp) else {
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

    /// The position in columns 3 to 6 of a stream's row; nil if there is none, or one that no client writes.
    private static func position(of stream: StreamName, _ row: Statement) -> Position? {
        guard let epoch = Epoch(row.text(3)), !row.isNull(6), let covered = SeqRanges(stored: row.text(6)) else {
            return nil
        }
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

    /// Entries of a stream's queue behind this number, at most so many, or about so many bytes; and the epoch in which
    /// their bases count, where it is known.
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
            SELECT number, event, site, op, first_epoch, first_seq, known, waits FROM outbox
            WHERE stream = ? AND number > ? ORDER BY number
            """
        )
        select.bind(1, row)
        select.bind(2, number)
        defer { select.reset() }
        while entries.count < limit, size < bytes, try select.step() {
            size += select.bytes(1).count
            guard let entry = Self.entry(select) else {
                throw Self.damaged("outbox", "\(select.integer(0)), \(select.text(1))")
            }
            entries.append(entry)
        }
        return entries
    }

    /// The entry of a row; nil where the row holds what no client writes.
    private static func entry(_ row: Statement) -> Outbox.Entry? {
        var base = Seq.none
        guard let event = Event(encoded: row.bytes(1), base: &base), base >= .none,
            (1...largestInteger).contains(row.integer(0))
        else { return nil }
        var entry = Outbox.Entry(number: row.integer(0), event: event, base: base)
        if !row.isNull(2) || !row.isNull(3) {
            guard let site = Site(row.text(2)), (0...largestInteger).contains(row.integer(3)) else { return nil }
            entry.author = .init(site: site, op: row.integer(3))
        }
        if !row.isNull(4) || !row.isNull(5) {
            guard let epoch = Epoch(row.text(4)), (Seq.none...largestInteger).contains(row.integer(5)) else {
                return nil
            }
            entry.firstSent = .init(epoch: epoch, seq: row.integer(5))
        }
        guard let held = numbers(row.text(6)) else { return nil }
        entry.held = held.map { Int($0) }
        if !row.isNull(7) {
            guard let waits = numbers(row.text(7)) else { return nil }
            entry.waits = waits
        }
        return entry
    }

    /// The numbers of a list with commas; nil if something else stands there.
    private static func numbers(_ text: String) -> [Int64]? {
        let parts = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int64($0) }.filter { (0...largestInteger).contains($0) }
        return numbers.count == parts.count ? numbers : nil
    }

    /// Forgets, in the queues of all streams, which objects the device has held. Inside `commit`.
    func forgetHeld() throws(SQLiteError) {
        try connection.execute("UPDATE outbox SET known = NULL")
    }

    /// Changes of the queue. Inside `commit`.
    func write(_ writes: [Outbox.Write], _ row: Int64) throws(SQLiteError) {
        for write in writes {
            switch write {
            case .put(let entry):
                putEntry.bind(1, row)
                putEntry.bind(2, entry.number)
                putEntry.bind(3, entry.event.encoded(base: entry.base))
                putEntry.bind(4, entry.author?.site.description)
                if let op = entry.author?.op { putEntry.bind(5, op) } else { putEntry.bindNull(5) }
                putEntry.bind(6, entry.firstSent?.epoch.description)
                if let seq = entry.firstSent?.seq { putEntry.bind(7, seq) } else { putEntry.bindNull(7) }
                putEntry.bind(8, entry.held.isEmpty ? nil : entry.held.map(String.init).joined(separator: ","))
                putEntry.bind(9, entry.waits?.map(String.init).joined(separator: ","))
                try putEntry.run()
            case .remove(let number, _):
                removeEntry.bind(1, row)
                removeEntry.bind(2, number)
                try removeEntry.run()
            case .site(let site, let next):
                putSite.bind(1, site.description)
                putSite.bind(2, next)
                putSite.bind(3, row)
                try putSite.run()
            }
        }
    }
}
