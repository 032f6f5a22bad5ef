internal import ReelCore

// The streams of a device, and the positions up to which they were received.
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

    /// The position up to which a stream was received.
    struct Position: Equatable {
        var epoch: Epoch
        var partition: Int
        var partitions: Int
        var covered: SeqRanges
        /// True once the device has had the whole stream.
        var isComplete: Bool
        /// The seq of the stored state; −1: there is none.
        var stateSeq = Seq.none
        /// The last time at which the stream was known to be up to date, in milliseconds since 1970; nil: never.
        var upToDateMs: Int64?
    }

    /// Returns the stored data of a stream. A stream that the store does not know begins with `newSite`.
    func open(_ stream: StreamName, newSite: Site) throws(ReelError) -> Stored {
        if let stored = try find(stream) { return stored }
        let row = reserveNumber()
        try commit(durably: true) { changes throws(ReelError) in
            changes.seal(StreamRow(row: row, site: newSite).content, for: StoreKey.stream(stream))
            changeClient(&changes) { $0.streams += 1 }
        }
        return Stored(row: row, site: newSite, nextOp: 0, entries: [])
    }

    /// Reads the data of a stream; nil if the store does not know the stream.
    private func find(_ stream: StreamName) throws(ReelError) -> Stored? {
        let snapshot = try storage.snapshot()
        let known = try snapshot.sealed(StoreKey.stream(stream)) { (content) throws(ReelError) in
            try StreamRow(content)
        }
        guard let known else { return nil }
        let found = try snapshot.value(for: StoreKey.position(known.row))
        let position = try Self.position(known.row, snapshot)
        var stored = Stored(
            row: known.row,
            site: known.site,
            nextOp: known.nextOp,
            entries: try entries(of: known.row, snapshot)
        )
        // A flipped bit in a page of the file can hide rows from SQLite.
        guard stored.entries.count == known.queued else {
            throw ReelError.lostRows(
                "waiting events of the stream \(stream)",
                found: stored.entries.count,
                expected: known.queued
            )
        }
        stored.epoch = position?.epoch
        stored.holdsState = found != nil && (position == nil || position?.position != nil)
        if let read = position?.position, read.partition == stream.partition(of: read.partitions) {
            stored.position = read
        }
        return stored
    }

    /// Returns the row and the epoch of a stream; nil if the store does not know the stream.
    func row(of stream: StreamName, _ snapshot: any StorageSnapshot) throws(ReelError) -> (row: Int64, epoch: Epoch?)? {
        let known = try snapshot.sealed(StoreKey.stream(stream)) { (content) throws(ReelError) in
            try StreamRow(content)
        }
        guard let known else { return nil }
        return (known.row, try Self.position(known.row, snapshot)?.epoch)
    }

    /// Returns the position of a stream; nil if there is none, or if it is damaged.
    private static func position(_ row: Int64, _ snapshot: any StorageSnapshot) throws(ReelError) -> PositionRow? {
        do throws(ReelError) {
            return try snapshot.sealed(StoreKey.position(row)) { (content) throws(ReelError) in
                try PositionRow(content)
            }
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    /// Returns the names of all streams that the store knows, with their rows, ordered by the bytes of the names.
    private func streams(_ snapshot: any StorageSnapshot) throws(ReelError) -> [(name: StreamName, row: StreamRow)] {
        var streams: [(StreamName, StreamRow)] = []
        let start = StoreKey.streams
        try snapshot.forEach(from: start, to: StoreKey.end(of: start)) { (key, value) throws(ReelError) in
            guard let name = StreamName(bytes: Bytes(rebasing: key[start.count...])),
                let content = SealedValue.open(value, for: key)
            else { throw ReelError.damagedStore(key) }
            do throws(ReelError) { streams.append((name, try StreamRow(content))) } catch { throw .damagedStore(key) }
            return true
        }
        return streams
    }

    /// Returns the number of waiting own events of a stream; nil if the store does not know the stream.
    func queued(_ stream: StreamName) throws(ReelError) -> Int? {
        try storage.snapshot().sealed(StoreKey.stream(stream)) { (content) throws(ReelError) in
            try StreamRow(content).queued
        }
    }

    /// True if the store knows no stream.
    func isEmpty() throws(ReelError) -> Bool { try streams(try storage.snapshot()).isEmpty }

    /// Returns the number of waiting own events, by the name of each stream that the store knows.
    func queued() throws(ReelError) -> [String: Int] {
        var queued: [String: Int] = [:]
        for (name, stream) in try streams(try storage.snapshot()) { queued[name.description] = stream.queued }
        return queued
    }

    /// Throws `store_damaged` if the storage does not hold as many streams as the client's row says.
    func checkStreams() throws(ReelError) {
        var found = 0
        let start = StoreKey.streams
        // A damaged row counts: its stream cannot be opened, and all others can.
        try storage.snapshot().forEach(from: start, to: StoreKey.end(of: start)) { (_, _) throws(ReelError) in
            found += 1
            return true
        }
        guard found == client.streams else {
            throw ReelError.lostRows("streams", found: found, expected: client.streams)
        }
    }

    /// Returns the streams in which a site of the store was given an op.
    func writtenStreams() throws(ReelError) -> [StreamName] {
        try streams(try storage.snapshot()).filter { $0.row.nextOp > 0 }.sorted { $0.row.row < $1.row.row }.map(\.name)
    }

    // MARK: Writing, inside `commit`

    /// Writes the position up to which a stream was received, together with the events or the state that prove it.
    func write(_ position: Position, _ row: Int64, _ changes: inout StorageChanges) {
        changes.seal(PositionRow(epoch: position.epoch, position: position).content, for: StoreKey.position(row))
    }

    /// Drops the received data of a stream. Keeps its queue, and the epoch of the queue's bases.
    func forgetState(_ row: Int64, epoch: Epoch?) throws(ReelError) {
        let snapshot = try storage.snapshot()
        let layers = try layers(row, snapshot)
        try commit(durably: false) { changes throws(ReelError) in
            removeState(row, &changes)
            if let epoch {
                changes.seal(PositionRow(epoch: epoch, position: nil).content, for: StoreKey.position(row))
            }
        }
        unusedGenerations += layers
    }

    // MARK: Removing

    /// Drops the received data of a stream, if the store knows it. The objects leave the storage later, in steps.
    func evict(_ stream: StreamName) throws(ReelError) {
        guard let (row, epoch) = try row(of: stream, try storage.snapshot()) else { return }
        try forgetState(row, epoch: epoch)
    }

    /// Removes a stream with its queue, if the store knows it. The objects leave the storage later, in steps.
    func forget(_ stream: StreamName) throws(ReelError) {
        let snapshot = try storage.snapshot()
        guard let (row, _) = try row(of: stream, snapshot) else { return }
        let layers = try layers(row, snapshot)
        try commit(durably: true) { changes throws(ReelError) in
            removeState(row, &changes)
            changes.removeRange(from: StoreKey.queue(row), to: StoreKey.end(of: StoreKey.queue(row)))
            changes.remove(StoreKey.stream(stream))
            changeClient(&changes) { $0.streams -= 1 }
        }
        unusedGenerations += layers
    }

    /// Returns the generations of the state and of the load of a stream. A generation that a damaged value names is
    /// found at the next start.
    private func layers(_ row: Int64, _ snapshot: any StorageSnapshot) throws(ReelError) -> [Int64] {
        var layers: [Int64] = []
        for key in [StoreKey.state(row), StoreKey.load(row)] {
            layers += try StateRow.layers(key, snapshot) ?? []
        }
        return layers
    }

    /// Removes what names the received data of a stream, and the events after its folded state.
    private func removeState(_ row: Int64, _ changes: inout StorageChanges) {
        for key in [StoreKey.state(row), StoreKey.load(row), StoreKey.position(row)] { changes.remove(key) }
        // Nobody can tell then which objects have changed.
        changes.removeRange(from: StoreKey.history(row), to: StoreKey.end(of: StoreKey.history(row)))
        dropEvents(row, &changes)
    }
}

/// The value of a stream's key.
struct StreamRow {
    var row: Int64
    var site: Site
    var nextOp: Op
    /// The number of events in the queue.
    var queued: Int

    init(row: Int64, site: Site, nextOp: Op = 0, queued: Int = 0) {
        (self.row, self.site, self.nextOp, self.queued) = (row, site, nextOp, queued)
    }

    init(_ content: Bytes) throws(ReelError) {
        var reader = RowReader(content)
        row = try reader.number()
        guard let site = Site(try reader.text()), row > 0 else { throw reader.damaged("a stream") }
        self.site = site
        nextOp = try reader.number()
        queued = Int(try reader.number())
        guard nextOp >= 0, queued >= 0 else { throw reader.damaged("an op") }
        try reader.end()
    }

    var content: [UInt8] {
        var writer = RowWriter([])
        writer.write(row)
        writer.write(Array(site.description.utf8))
        writer.write(nextOp)
        writer.write(Int64(queued))
        return writer.bytes
    }
}

/// The value of a stream's position. The position is nil if only the epoch of the queue's bases is known.
struct PositionRow {
    var epoch: Epoch
    var position: DeviceStore.Position?

    init(epoch: Epoch, position: DeviceStore.Position?) {
        (self.epoch, self.position) = (epoch, position)
    }

    init(_ content: Bytes) throws(ReelError) {
        var reader = RowReader(content)
        guard let epoch = Epoch(try reader.text()) else { throw reader.damaged("an epoch") }
        self.epoch = epoch
        guard try reader.flag() else {
            try reader.end()
            return
        }
        let (partition, partitions) = (Int(try reader.number()), Int(try reader.number()))
        var covered = SeqRanges()
        for _ in 0..<(try reader.count()) {
            let (first, last) = (try reader.number(), try reader.number())
            guard first >= 0, first <= last, last <= largestInteger else { throw reader.damaged("a range") }
            covered.insert(first...last)
        }
        let isComplete = try reader.flag()
        let stateSeq = try reader.number()
        let upToDateMs = try reader.flag() ? try reader.number() : nil
        guard partitions > 0 else { throw reader.damaged("a number of partitions") }
        position = DeviceStore.Position(
            epoch: epoch,
            partition: partition,
            partitions: partitions,
            covered: covered,
            isComplete: isComplete,
            stateSeq: stateSeq,
            upToDateMs: upToDateMs
        )
        try reader.end()
    }

    var content: [UInt8] {
        var writer = RowWriter([])
        writer.write(Array(epoch.description.utf8))
        writer.write(position != nil)
        guard let position else { return writer.bytes }
        writer.write(Int64(position.partition))
        writer.write(Int64(position.partitions))
        writer.write(Int64(position.covered.ranges.count))
        for range in position.covered.ranges {
            writer.write(range.lowerBound)
            writer.write(range.upperBound)
        }
        writer.write(position.isComplete)
        writer.write(position.stateSeq)
        writer.write(position.upToDateMs != nil)
        if let upToDateMs = position.upToDateMs { writer.write(upToDateMs) }
        return writer.bytes
    }
}
