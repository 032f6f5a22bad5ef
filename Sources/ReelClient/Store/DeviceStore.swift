internal import ReelCore
internal import ReelSQLite

/// The device's SQLite file: for each stream the queue of own events, and what was received: a folded state in the
/// lines of a snapshot, the events behind it, and the ranges of seq that both prove; for all of them the log's number.
///
/// Position and data change in one transaction. What an app was promised (an event in the queue, an op that was given)
/// waits for the disk; what can be received again does not, but stays behind it in the file, so that a lost end of the
/// file is an older moment, never a mixed one. One process at a time.
final class DeviceStore {
    /// What the file holds of a stream.
    struct Stored {
        var row: Int64
        var site: Site
        var nextOp: Op
        var entries: [Outbox.Entry]
        /// The epoch in which the bases of the entries count; nil: no log was met yet.
        var epoch: Epoch?
        /// Nil where no state is held.
        var position: Position?
    }

    /// How far a stream was received.
    struct Position: Equatable {
        var epoch: Epoch
        var partition: Int
        var partitions: Int
        var covered: SeqRanges
    }

    /// The WAL is copied into the file when it has grown to so many pages.
    private static let walFramesMax = 1_000
    /// A state is kept in pieces of about this size.
    private static let pieceBytes = 256 << 10

    private let connection: Connection
    private var isFull = true

    private let putStream: Statement
    private let putLogNumber: Statement
    private let putPosition: Statement
    private let dropPosition: Statement
    private let putSite: Statement
    private let putEntry: Statement
    private let removeEntry: Statement
    private let putEvent: Statement
    private let dropEvents: Statement
    private let putState: Statement
    private let dropState: Statement

    /// Opens or makes the file. Throws `internal` where that cannot be; the message says whether another process has
    /// it, whether it is another program's, or what SQLite found.
    init(path: String) throws(ReelError) {
        do throws(SQLiteError) {
            let connection = try Connection(path: path, mode: .create)
            try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            try connection.useWAL(.full)
            try connection.transaction { () throws(SQLiteError) in try StoreFormat.prepare(connection) }
            putStream = try connection.prepare("INSERT INTO stream (name, site, next_op) VALUES (?, ?, ?)")
            putLogNumber = try connection.prepare("UPDATE client SET number = ? WHERE row = 1")
            putPosition = try connection.prepare(
                "UPDATE stream SET epoch = ?, partition = ?, partitions = ?, covered = ? WHERE row = ?"
            )
            dropPosition = try connection.prepare(
                "UPDATE stream SET partition = NULL, partitions = NULL, covered = NULL WHERE row = ?"
            )
            putSite = try connection.prepare("UPDATE stream SET site = ?, next_op = ? WHERE row = ?")
            putEntry = try connection.prepare("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
            removeEntry = try connection.prepare("DELETE FROM outbox WHERE stream = ? AND number = ?")
            putEvent = try connection.prepare("INSERT OR REPLACE INTO event VALUES (?, ?, ?)")
            dropEvents = try connection.prepare("DELETE FROM event WHERE stream = ? AND seq <= ?")
            putState = try connection.prepare("INSERT INTO state VALUES (?, ?, ?)")
            dropState = try connection.prepare("DELETE FROM state WHERE stream = ?")
            self.connection = connection
        } catch {
            throw ReelError(error, path)
        }
    }

    /// Copies the WAL into the file, so that the file alone is a whole copy once nobody has it open.
    deinit {
        _ = try? connection.checkpoint(.truncate)
    }

    // MARK: Reading

    /// The highest number of a log that a node was at.
    func logNumber() throws(ReelError) -> Int {
        do throws(SQLiteError) {
            return Int(try connection.integer("SELECT number FROM client WHERE row = 1") ?? 0)
        } catch {
            throw ReelError(error, "reading")
        }
    }

    /// By the name of each stream that the file knows: how many own events wait in it.
    func queued() throws(ReelError) -> [String: Int] {
        do throws(SQLiteError) {
            let select = try connection.prepare(
                "SELECT name, (SELECT count(*) FROM outbox WHERE outbox.stream = stream.row) FROM stream"
            )
            var queued: [String: Int] = [:]
            while try select.step() { queued[select.text(0)] = Int(select.integer(1)) }
            return queued
        } catch {
            throw ReelError(error, "reading")
        }
    }

    /// What the file holds of a stream; a stream that it does not know begins with this site.
    func open(_ stream: StreamName, newSite: Site) throws(ReelError) -> Stored {
        do throws(SQLiteError) {
            let select = try connection.prepare(
                "SELECT row, site, next_op, epoch, partition, partitions, covered FROM stream WHERE name = ?"
            )
            select.bind(1, stream.description)
            guard try select.step() else {
                putStream.bind(1, stream.description)
                putStream.bind(2, newSite.description)
                putStream.bind(3, 0 as Int64)
                try transaction(durably: true) { () throws(SQLiteError) in try putStream.run() }
                let row = connection.lastInsertedRow
                return Stored(row: row, site: newSite, nextOp: 0, entries: [], position: nil)
            }
            defer { select.reset() }
            guard let site = Site(select.text(1)), (0...largestInteger).contains(select.integer(2)) else {
                throw Self.damaged("stream", "\(select.text(1)), \(select.integer(2))")
            }
            var stored = Stored(
                row: select.integer(0),
                site: site,
                nextOp: select.integer(2),
                entries: [],
                epoch: Epoch(select.text(3)),
                position: nil
            )
            if let epoch = stored.epoch, !select.isNull(6), let covered = SeqRanges(stored: select.text(6)) {
                stored.position = Position(
                    epoch: epoch,
                    partition: Int(select.integer(4)),
                    partitions: Int(select.integer(5)),
                    covered: covered
                )
            }
            stored.entries = try entries(of: stored.row)
            return stored
        } catch {
            throw ReelError(error, stream.description)
        }
    }

    private func entries(of row: Int64) throws(SQLiteError) -> [Outbox.Entry] {
        var entries: [Outbox.Entry] = []
        let select = try connection.prepare(
            """
            SELECT number, event, site, op, first_epoch, first_seq, known, waits FROM outbox WHERE stream = ?
            ORDER BY number
            """
        )
        select.bind(1, row)
        while try select.step() {
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
        guard let event = Event(encoded: row.bytes(1), base: &base), (1...largestInteger).contains(row.integer(0))
        else {
            return nil
        }
        var entry = Outbox.Entry(number: row.integer(0), event: event, base: base, isFresh: false)
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
        entry.knew = row.integer(6) != 0
        if !row.isNull(7) {
            let numbers = row.text(7).split(separator: ",")
            entry.waits = numbers.compactMap { Int64($0) }
            guard entry.waits?.count == numbers.count else { return nil }
        }
        return entry
    }

    /// Lends the pieces of the stored state, in order.
    func readState(_ row: Int64, _ body: (Bytes) throws(ReelError) -> Void) throws(ReelError) {
        let select = try statement("SELECT lines FROM state WHERE stream = ? ORDER BY piece", row)
        defer { select.reset() }
        while try step(select) { try body(select.bytes(0)) }
    }

    /// Lends the stored events, by seq.
    func readEvents(_ row: Int64, _ body: (Seq, Bytes) -> Void) throws(ReelError) {
        let select = try statement("SELECT seq, value FROM event WHERE stream = ? ORDER BY seq", row)
        while try step(select) { body(select.integer(0), select.bytes(1)) }
    }

    private func statement(_ sql: String, _ row: Int64) throws(ReelError) -> Statement {
        do throws(SQLiteError) {
            let statement = try connection.prepare(sql)
            statement.bind(1, row)
            return statement
        } catch {
            throw ReelError(error, "reading")
        }
    }

    private func step(_ statement: Statement) throws(ReelError) -> Bool {
        do throws(SQLiteError) { return try statement.step() } catch { throw ReelError(error, "reading") }
    }

    // MARK: Writing

    /// Commits what the body writes as one; `durably`: it returns when the disk has it.
    func commit(durably: Bool, _ body: () throws(SQLiteError) -> Void) throws(ReelError) {
        do throws(SQLiteError) {
            try transaction(durably: durably, body)
        } catch {
            throw ReelError(error, "commit")
        }
        // What is committed is kept in the WAL, also where there is no room to copy it: the next commit tries again.
        if connection.walFrames > Self.walFramesMax { _ = try? connection.checkpoint(.passive) }
    }

    private func transaction(durably: Bool, _ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        if durably != isFull {
            try connection.execute("PRAGMA synchronous = \(durably ? "FULL" : "NORMAL")")
            isFull = durably
        }
        try connection.transaction(body)
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
                putEntry.bind(8, entry.knew ? 1 : 0 as Int64)
                putEntry.bind(9, entry.waits?.map(String.init).joined(separator: ","))
                try putEntry.run()
            case .remove(let number):
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

    /// An event that was received. Inside `commit`.
    func write(event value: Bytes, seq: Seq, _ row: Int64) throws(SQLiteError) {
        putEvent.bind(1, row)
        putEvent.bind(2, seq)
        putEvent.bind(3, lending: value)
        try putEvent.run()
    }

    /// How far was received. Inside `commit`, with the events or the state that prove it.
    func write(_ position: Position, _ row: Int64) throws(SQLiteError) {
        putPosition.bind(1, position.epoch.description)
        putPosition.bind(2, Int64(position.partition))
        putPosition.bind(3, Int64(position.partitions))
        putPosition.bind(4, position.covered.stored)
        putPosition.bind(5, row)
        try putPosition.run()
    }

    /// The highest number of a log that a node was at. Inside `commit`.
    func write(logNumber: Int) throws(SQLiteError) {
        putLogNumber.bind(1, Int64(logNumber))
        try putLogNumber.run()
    }

    /// Drops all events of a stream: they are of a log that has ended, and their seqs mean something else in the next.
    /// Inside `commit`, before what is of the next one.
    func dropEvents(_ row: Int64) throws(SQLiteError) {
        dropEvents.bind(1, row)
        dropEvents.bind(2, largestInteger)
        try dropEvents.run()
    }

    /// A state in the lines of a snapshot takes the place of the former one and of the events up to its seq. Inside
    /// `commit`.
    func write(state lines: Bytes, upTo seq: Seq, _ row: Int64) throws(SQLiteError) {
        dropState.bind(1, row)
        try dropState.run()
        var piece: Int64 = 0
        var rest = lines[...]
        while !rest.isEmpty {
            putState.bind(1, row)
            putState.bind(2, piece)
            putState.bind(3, lending: Bytes(rebasing: rest.prefix(Self.pieceBytes)))
            try putState.run()
            rest = rest.dropFirst(Self.pieceBytes)
            piece += 1
        }
        dropEvents.bind(1, row)
        dropEvents.bind(2, seq)
        try dropEvents.run()
    }

    /// Drops what was received of a stream; keeps its queue, and the epoch in which the bases of the queue count.
    func forgetState(_ row: Int64) throws(ReelError) {
        try commit(durably: false) { () throws(SQLiteError) in
            dropState.bind(1, row)
            try dropState.run()
            try dropEvents(row)
            dropPosition.bind(1, row)
            try dropPosition.run()
        }
    }

    private static func damaged(_ table: String, _ found: String) -> SQLiteError {
        SQLiteError(extendedCode: 11, message: "found \(found.prefix(80).debugDescription) in table \(table)")
    }
}

@available(*, unavailable)
extension DeviceStore: Sendable {}

extension ReelError {
    fileprivate init(_ error: SQLiteError, _ doing: String) {
        let advice =
            switch error.kind {
            case .locked: "; another process has the store open"
            case .full: "; there is no room on the disk"
            case .notADatabase: "; the file is not a store of this client"
            case .cannotOpen: "; its folder must be there, and this user able to write in it"
            case .readOnly: "; this user must be able to write the file and its folder"
            default: ""
            }
        self.init(.internal, "the device's store, \(doing): \(error)\(advice)")
    }
}

extension SeqRanges {
    /// `0-9,15-15`.
    fileprivate var stored: String {
        ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }

    fileprivate init?(stored: String) {
        self.init()
        for range in stored.split(separator: ",") {
            let ends = range.split(separator: "-").compactMap { Seq($0) }
            guard ends.count == 2, ends[0] <= ends[1], ends[1] <= largestInteger else { return nil }
            insert(ends[0]...ends[1])
        }
    }
}
