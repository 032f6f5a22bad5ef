internal import ReelCore

// The queues of own events.
extension DeviceStore {
    /// Reads a page of a stream's queue.
    ///
    /// - Parameters:
    ///   - stream: the name of the stream.
    ///   - number: the entries after this number are read.
    ///   - limit: the maximum number of entries.
    ///   - bytes: the number of bytes of events after which the page ends.
    /// - Returns: The entries, and the epoch of their bases if it is known.
    /// - Throws: `store_damaged` for an entry that no client has written.
    func entries(
        of stream: StreamName,
        after number: Int64,
        limit: Int,
        bytes: Int
    ) throws(ReelError) -> (entries: [Outbox.Entry], epoch: Epoch?) {
        let snapshot = try storage.snapshot()
        guard let (row, epoch) = try row(of: stream, snapshot) else { return ([], nil) }
        return (try entries(of: row, snapshot, after: number, limit: limit, bytes: bytes), epoch)
    }

    func entries(
        of row: Int64,
        _ snapshot: any StorageSnapshot,
        after number: Int64 = 0,
        limit: Int = .max,
        bytes: Int = .max
    ) throws(ReelError) -> [Outbox.Entry] {
        var entries: [Outbox.Entry] = []
        var size = 0
        let end = StoreKey.end(of: StoreKey.queue(row))
        try snapshot.forEach(from: StoreKey.entry(row, number + 1), to: end) { (key, value) throws(ReelError) in
            guard let number = StoreKey.number(in: key, at: 9), let content = SealedValue.open(value, for: key),
                let entry = Outbox.Entry(number: number, content)
            else { throw ReelError.damagedStore(key) }
            entries.append(entry)
            size += content.count
            return entries.count < limit && size < bytes
        }
        return entries
    }

    /// Forgets, in the queues of all streams, which objects the device has held. Call it inside `commit`.
    func forgetHeld(_ changes: inout StorageChanges) throws(ReelError) {
        let snapshot = try storage.snapshot()
        let queues: [UInt8] = [UInt8(ascii: "q")]
        try snapshot.forEach(from: queues, to: StoreKey.end(of: queues)) { (key, value) throws(ReelError) in
            guard let number = StoreKey.number(in: key, at: 9), let content = SealedValue.open(value, for: key),
                var entry = Outbox.Entry(number: number, content)
            else { throw ReelError.damagedStore(key) }
            guard !entry.held.isEmpty else { return true }
            entry.held = []
            changes.seal(entry.content, for: Array(key))
            return true
        }
    }

    /// Writes changes of the queue. Call it inside `commit`.
    ///
    /// - Parameters:
    ///   - writes: the changes.
    ///   - outbox: the queue after these changes.
    ///   - stream: the name of the stream.
    ///   - row: the number of the stream.
    ///   - changes: the changes of the commit.
    func write(
        _ writes: [Outbox.Write],
        of outbox: Outbox,
        _ stream: StreamName,
        _ row: Int64,
        _ changes: inout StorageChanges
    ) {
        if writes.isEmpty { return }
        for write in writes {
            switch write {
            case .put(let entry): changes.seal(entry.content, for: StoreKey.entry(row, entry.number))
            case .remove(let number, _): changes.remove(StoreKey.entry(row, number))
            case .site: break
            }
        }
        let known = StreamRow(row: row, site: outbox.site, nextOp: outbox.nextOp, queued: outbox.entries.count)
        changes.seal(known.content, for: StoreKey.stream(stream))
    }
}

extension Outbox.Entry {
    /// Reads the stored form of an entry; nil if no client writes it.
    init?(number: Int64, _ content: Bytes) {
        guard (1...largestInteger).contains(number) else { return nil }
        do throws(ReelError) {
            var row = RowReader(content)
            var base = Seq.none
            guard let event = SyncEvent(encoded: try row.data(), base: &base), base >= .none else { return nil }
            self.init(number: number, event: event, base: base)
            if try row.flag() {
                guard let site = Site(try row.text()) else { return nil }
                author = .init(site: site, op: try row.number())
            }
            if try row.flag() {
                guard let epoch = Epoch(try row.text()) else { return nil }
                firstSent = .init(epoch: epoch, seq: try row.number())
            }
            for _ in 0..<(try row.count()) { held.append(Int(try row.number())) }
            if try row.flag() {
                var numbers: [Int64] = []
                for _ in 0..<(try row.count()) { numbers.append(try row.number()) }
                waits = numbers
            }
            try row.end()
        } catch {
            return nil
        }
        guard author?.op ?? 0 >= 0, held.allSatisfy({ $0 >= 0 }), waits?.allSatisfy({ $0 >= 0 }) ?? true else {
            return nil
        }
    }

    /// The stored form, without the number.
    var content: [UInt8] {
        var row = RowWriter([])
        row.write(event.encoded(base: base))
        row.write(author != nil)
        if let author {
            row.write(Array(author.site.description.utf8))
            row.write(author.op)
        }
        row.write(firstSent != nil)
        if let firstSent {
            row.write(Array(firstSent.epoch.description.utf8))
            row.write(firstSent.seq)
        }
        row.write(Int64(held.count))
        for index in held { row.write(Int64(index)) }
        row.write(waits != nil)
        if let waits {
            row.write(Int64(waits.count))
            for number in waits { row.write(number) }
        }
        return row.bytes
    }
}
