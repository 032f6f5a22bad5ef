internal import ReelCore
internal import ReelSQLite

// The received data of a stream: a folded state in rows, the later events, and the seqs that both prove.
extension DeviceStore {
    /// The position up to which a stream was received.
    struct Position: Equatable {
        var epoch: Epoch
        var partition: Int
        var partitions: Int
        var covered: SeqRanges
        /// True once the device has had the whole stream.
        var isComplete: Bool
    }

    /// Returns the stored state of a stream as of this position. Returns an empty state if no row was written yet.
    /// Returns nil if the rows are not those that were written.
    func readState(_ name: StreamName, _ position: Position, _ row: Int64) throws(ReelError) -> Fold? {
        let select = "SELECT state_seq, state_digest, state_head, state_hash FROM stream WHERE row = ?"
        let head = try statement(select, row)
        guard try step(head), !head.isNull(0) else {
            return Fold(stream: name, partition: position.partition, epoch: position.epoch, listsChanges: true)
        }
        defer { head.reset() }
        let (seq, digest) = (head.integer(0), UInt64(bitPattern: head.integer(1)))
        let hash = StoreRowHash.state(row, seq: seq, digest: head.integer(1), head: head.bytes(2))
        guard (Seq.none...largestInteger).contains(seq), head.integer(3) == hash else { return nil }
        let sites = try statement("SELECT site, value, hash FROM site WHERE stream = ?", row)
        defer { sites.reset() }
        let objects = try statement("SELECT key, value, hash FROM object WHERE stream = ? ORDER BY key", row)
        defer { objects.reset() }
        let loader = try? FoldLoader(
            stream: name,
            partition: position.partition,
            epoch: position.epoch,
            seq: seq,
            head: head.bytes(2),
            listsChanges: true
        )
        guard var loader else { return nil }
        while try step(sites) {
            guard sites.integer(2) == StoreRowHash.part(of: row, key: sites.bytes(0), value: sites.bytes(1)),
                let site = Site(sites.text(0)), (try? loader.add(site: site, row: sites.bytes(1))) != nil
            else { return nil }
        }
        while try step(objects) {
            guard objects.integer(2) == StoreRowHash.part(of: row, key: objects.bytes(0), value: objects.bytes(1)),
                (try? loader.add(objectKey: objects.bytes(0), row: objects.bytes(1))) != nil
            else { return nil }
        }
        var fold = loader.finish()
        return fold.digest() == digest ? fold : nil
    }

    /// Returns the stored events, sorted by seq; nil if the rows are not those that were written.
    func readEvents(_ row: Int64) throws(ReelError) -> [DeliveredEvent]? {
        let select = try statement("SELECT seq, value, hash FROM event WHERE stream = ? ORDER BY seq", row)
        defer { select.reset() }
        var events: [DeliveredEvent] = []
        while try step(select) {
            let (seq, value) = (select.integer(0), select.bytes(1))
            guard select.integer(2) == StoreRowHash.event(row, seq: seq, value: value) else { return nil }
            events.append(DeliveredEvent(seq: seq, value: Array(value)))
        }
        return events
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

    // MARK: Writing, inside `commit`

    /// Writes an event that was received.
    func write(event value: [UInt8], seq: Seq, _ row: Int64) throws(SQLiteError) {
        putEvent.bind(1, row)
        putEvent.bind(2, seq)
        putEvent.bind(3, value)
        putEvent.bind(4, value.withUnsafeBytes { StoreRowHash.event(row, seq: seq, value: $0) })
        try putEvent.run()
    }

    /// Writes the position up to which a stream was received, together with the events or the state that prove it.
    func write(_ position: Position, _ row: Int64) throws(SQLiteError) {
        let (epoch, covered) = (position.epoch.description, position.covered.stored)
        let (partition, partitions) = (Int64(position.partition), Int64(position.partitions))
        let complete: Int64 = position.isComplete ? 1 : 0
        putPosition.bind(1, epoch)
        putPosition.bind(2, partition)
        putPosition.bind(3, partitions)
        putPosition.bind(4, covered)
        putPosition.bind(5, complete)
        putPosition.bind(
            6,
            StoreRowHash.position(
                row,
                epoch: epoch,
                partition: partition,
                partitions: partitions,
                covered: covered,
                complete: complete
            )
        )
        putPosition.bind(7, row)
        try putPosition.run()
    }

    /// Drops all events of a stream, because they belong to a log that has ended, and the next log uses their seqs
    /// again. Call it before data of the next log is written.
    func dropEvents(_ row: Int64) throws(SQLiteError) {
        try dropEvents(upTo: largestInteger, row)
    }

    private func dropEvents(upTo seq: Seq, _ row: Int64) throws(SQLiteError) {
        dropEvents.bind(1, row)
        dropEvents.bind(2, seq)
        try dropEvents.run()
    }

    /// Writes the rows of a state that the store lacks, and drops the events up to the state's seq. `digest`: the
    /// digest of the state.
    func write(
        _ state: Fold,
        digest: UInt64,
        _ unwritten: UnwrittenState,
        _ row: Int64
    ) throws(SQLiteError) {
        if unwritten.isWhole { try dropRows(row) }
        // In the order of the table, so that each page is written once.
        for slot in unwritten.isWhole ? state.slots() : [] { try write(objectAt: slot, of: state, row) }
        for key in unwritten.objects.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            if let slot = state.slot(key) {
                try write(objectAt: slot, of: state, row)
            } else {
                dropObject.bind(1, row)
                dropObject.bind(2, key)
                try dropObject.run()
            }
        }
        let sites = unwritten.isWhole ? state.sites() : unwritten.sites.sorted()
        for site in sites { try write(site, of: state, row) }
        var head: [UInt8] = []
        state.writeHead(to: &head)
        putState.bind(1, state.seq)
        putState.bind(2, Int64(bitPattern: digest))
        putState.bind(3, head)
        let hash = head.withUnsafeBytes {
            StoreRowHash.state(row, seq: state.seq, digest: Int64(bitPattern: digest), head: $0)
        }
        putState.bind(4, hash)
        putState.bind(5, row)
        try putState.run()
        try dropEvents(upTo: state.seq, row)
    }

    private func write(objectAt slot: Int, of state: Fold, _ row: Int64) throws(SQLiteError) {
        var value: [UInt8] = []
        state.writeRow(ofObject: slot, to: &value)
        let key = state.key(ofObject: slot)
        putObject.bind(1, row)
        putObject.bind(2, key)
        putObject.bind(3, value)
        putObject.bind(4, hash(row, key, value))
        try putObject.run()
    }

    private func write(_ site: Site, of state: Fold, _ row: Int64) throws(SQLiteError) {
        guard state.site(site) != nil else {
            dropSiteRow.bind(1, row)
            dropSiteRow.bind(2, site.description)
            return try dropSiteRow.run()
        }
        var value: [UInt8] = []
        state.writeRow(ofSite: site, to: &value)
        putSiteRow.bind(1, row)
        putSiteRow.bind(2, site.description)
        putSiteRow.bind(3, value)
        putSiteRow.bind(4, hash(row, Array(site.description.utf8), value))
        try putSiteRow.run()
    }

    private func hash(_ row: Int64, _ key: [UInt8], _ value: [UInt8]) -> Int64 {
        key.withUnsafeBytes { key in value.withUnsafeBytes { StoreRowHash.part(of: row, key: key, value: $0) } }
    }

    private func dropRows(_ row: Int64) throws(SQLiteError) {
        for statement in [dropObjects, dropSiteRows] {
            statement.bind(1, row)
            try statement.run()
        }
    }

    /// Drops the received data of a stream. Keeps its queue, and the epoch of the queue's bases.
    func forgetState(_ row: Int64) throws(ReelError) {
        try commit(durably: false) { () throws(SQLiteError) in
            try dropRows(row)
            try dropEvents(row)
            dropPosition.bind(1, row)
            try dropPosition.run()
        }
    }
}

extension SeqRanges {
    /// The ranges as text: `0-9,15-15`.
    fileprivate var stored: String {
        ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
    }

    init?(stored: String) {
        self.init()
        for range in stored.split(separator: ",") {
            let ends = range.split(separator: "-").compactMap { Seq($0) }
            guard ends.count == 2, ends[0] <= ends[1], ends[1] <= largestInteger else { return nil }
            insert(ends[0]...ends[1])
        }
    }
}
