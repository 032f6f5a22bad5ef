internal import ReelCore

// The received data of a stream: the objects of a folded state, its sites, and the later events.
extension DeviceStore {
    /// The stored state of a stream.
    struct State {
        var fold: Fold
        /// The proof that the fold has read the log's last record; nil if the state came from a snapshot.
        var witness: ClientFrame.Witness?
    }

    /// Returns an empty fold whose objects will be written to a new generation.
    func emptyFold(of stream: StreamName, partition: Int, epoch: Epoch) -> Fold {
        Fold(
            stream: stream,
            partition: partition,
            epoch: epoch,
            listsChanges: true,
            source: StoredObjects(storage, layers: [reserveNumber()])
        )
    }

    /// Returns the stored state of a stream as of this position. Returns an empty state if none was written yet, and
    /// nil if the state is damaged. The objects are read when they are needed.
    func readState(_ name: StreamName, _ position: Position, _ row: Int64) throws(ReelError) -> State? {
        let snapshot = try storage.snapshot()
        do throws(ReelError) {
            let stored = try snapshot.sealed(StoreKey.state(row)) { (content) throws(ReelError) in
                try StateRow(content)
            }
            guard stored?.seq ?? .none == position.stateSeq else { return nil }
            guard let stored else {
                return State(fold: emptyFold(of: name, partition: position.partition, epoch: position.epoch))
            }
            let fold = try load(stored, of: name, partition: position.partition, epoch: position.epoch, snapshot)
            return State(fold: fold, witness: stored.witness)
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    /// Returns the fold that a row of the table describes, with its sites.
    func load(
        _ stored: StateRow,
        of name: StreamName,
        partition: Int,
        epoch: Epoch,
        _ snapshot: any StorageSnapshot
    ) throws(ReelError) -> Fold {
        let objects = StoredObjects(storage, layers: stored.layers)
        let made: Result<FoldLoader, ReelError> = stored.head.withUnsafeBytes { head in
            do throws(ReelError) {
                return .success(
                    try FoldLoader(
                        stream: name,
                        partition: partition,
                        epoch: epoch,
                        seq: stored.seq,
                        head: head,
                        listsChanges: true,
                        source: objects
                    )
                )
            } catch {
                return .failure(error)
            }
        }
        var loader = try made.get()
        let sites = StoreKey.sites(objects.generation)
        try snapshot.forEach(from: sites, to: StoreKey.end(of: sites)) { (key, value) throws(ReelError) in
            guard let content = SealedValue.open(value, for: key),
                let site = Site(String(decoding: key[sites.count...], as: UTF8.self))
            else { throw ReelError.damagedStore(key) }
            try loader.add(site: site, row: content)
            return true
        }
        return loader.finish(totals: stored.totals)
    }

    /// Returns the events after the stored state, sorted by seq; nil if they are damaged.
    func readEvents(_ row: Int64) throws(ReelError) -> [DeliveredEvent]? {
        let snapshot = try storage.snapshot()
        var events: [DeliveredEvent] = []
        var isDamaged = false
        let start = StoreKey.events(row)
        try snapshot.forEach(from: start, to: StoreKey.end(of: start)) { (key, value) throws(ReelError) in
            guard let seq = StoreKey.number(in: key, at: 9), let content = SealedValue.open(value, for: key) else {
                isDamaged = true
                return false
            }
            events.append(DeliveredEvent(seq: seq, value: Array(content)))
            return true
        }
        return isDamaged ? nil : events
    }

    // MARK: Writing, inside `commit`

    /// Writes an event that was received.
    func write(event value: [UInt8], seq: Seq, _ row: Int64, _ changes: inout StorageChanges) {
        changes.seal(value, for: StoreKey.event(row, seq))
    }

    /// Drops all events of a stream, because they belong to a log that has ended, and the next log uses their seqs
    /// again. Call it before data of the next log is written.
    func dropEvents(_ row: Int64, _ changes: inout StorageChanges) {
        let start = StoreKey.events(row)
        changes.removeRange(from: start, to: StoreKey.end(of: start))
    }

    /// Writes the rows of a folded state that the store lacks, and drops the events up to the state's seq. A load of
    /// the stream that has ended with this state ends here too.
    func write(
        _ fold: inout Fold,
        witness: ClientFrame.Witness?,
        _ row: Int64,
        _ changes: inout StorageChanges
    ) throws(ReelError) {
        guard let objects = fold.storedObjects else { return }
        let totals = fold.totals()
        let snapshot = try storage.snapshot()
        try fold.takeUnwrittenRows { (changed) throws(ReelError) in
            if objects.layers.count > 1 {
                try write(changed, below: objects.layers, snapshot, &changes)
            } else {
                Self.write(changed, to: objects.generation, marksRemoval: false, &changes)
            }
        }
        writeSites(of: &fold, to: objects.generation, &changes)
        let state = StateRow(objects.layers, fold, totals, witness)
        changes.seal(state.content, for: StoreKey.state(row))
        if try StateRow.layers(StoreKey.load(row), snapshot) == objects.layers { changes.remove(StoreKey.load(row)) }
        changes.removeRange(from: StoreKey.events(row), to: StoreKey.event(row, fold.seq + 1))
    }

    func writeSites(of fold: inout Fold, to generation: Int64, _ changes: inout StorageChanges) {
        fold.takeUnwrittenSites { site, row in
            let key = StoreKey.site(generation, site)
            if let row { changes.seal(row, for: key) } else { changes.remove(key) }
        }
    }

    /// Writes a row to a generation. `marksRemoval`: true for the upper one of two generations.
    static func write(
        _ changed: UnwrittenRow,
        to generation: Int64,
        marksRemoval: Bool,
        _ changes: inout StorageChanges
    ) {
        let key = StoreKey.object(generation, changed.key)
        if changed.row != nil || marksRemoval {
            changes.seal(StoredObject(changed.row), for: key)
        } else {
            changes.remove(key)
        }
        let (former, new) = (changed.formerAgingSeq, changed.row?.agingSeq)
        guard former != new else { return }
        if let former { changes.remove(StoreKey.aging(generation, AgingKey(seq: former, key: changed.key))) }
        if let new { changes.put(StoreKey.aging(generation, AgingKey(seq: new, key: changed.key)), []) }
    }

    /// Writes a row to the lower one of two generations, and removes it from the upper one.
    private func write(
        _ changed: UnwrittenRow,
        below layers: [Int64],
        _ snapshot: any StorageSnapshot,
        _ changes: inout StorageChanges
    ) throws(ReelError) {
        for layer in layers {
            let former = try StoredObject.find(changed.key, [layer], snapshot)?.row?.agingSeq
            let isLower = layer == layers.last
            let moved = UnwrittenRow(key: changed.key, row: isLower ? changed.row : nil, formerAgingSeq: former)
            Self.write(moved, to: layer, marksRemoval: false, &changes)
        }
    }
}

/// The value of a stream's folded state, or of a load: the generations of its objects, and the rest of the state but
/// the sites.
struct StateRow {
    /// The generations of the objects, the upper one first.
    var layers: [Int64]
    var seq: Seq
    var totals: FoldTotals
    var head: [UInt8]
    var witness: ClientFrame.Witness?

    /// Returns the generations that a state or a load names; nil if there is none, or if its value is damaged.
    static func layers(_ key: [UInt8], _ snapshot: any StorageSnapshot) throws(ReelError) -> [Int64]? {
        do throws(ReelError) {
            return try snapshot.sealed(key) { (content) throws(ReelError) in
                var row = RowReader(content)
                return try StateRow(&row).layers
            }
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    init(_ layers: [Int64], _ fold: Fold, _ totals: FoldTotals, _ witness: ClientFrame.Witness?) {
        (self.layers, self.totals, self.witness) = (layers, totals, witness)
        seq = fold.seq
        head = []
        fold.writeHead(to: &head)
    }

    init(_ content: Bytes) throws(ReelError) {
        var row = RowReader(content)
        try self.init(&row)
        try row.end()
    }

    init(_ row: inout RowReader) throws(ReelError) {
        layers = []
        for _ in 0..<(try row.count()) { layers.append(try row.number()) }
        seq = try row.number()
        let digest = try row.data()
        guard (1...2).contains(layers.count), Set(layers).count == layers.count, layers.allSatisfy({ $0 > 0 }),
            seq <= largestInteger, digest.count == 8
        else {
            throw row.damaged("a state")
        }
        totals = FoldTotals(
            digest: UInt64(littleEndian: digest.loadUnaligned(as: UInt64.self)),
            livingObjects: Int(try row.number()),
            objectBytes: Int(try row.number())
        )
        head = Array(try row.data())
        guard try row.flag() else { return }
        let seq = try row.number()
        let hash = try row.data()
        guard hash.count == 8 else { throw row.damaged("a hash") }
        witness = ClientFrame.Witness(seq: seq, hash: UInt64(littleEndian: hash.loadUnaligned(as: UInt64.self)))
    }

    var content: [UInt8] {
        var row = RowWriter([])
        write(to: &row)
        return row.bytes
    }

    func write(to row: inout RowWriter) {
        row.write(Int64(layers.count))
        for layer in layers { row.write(layer) }
        row.write(seq)
        row.write(withUnsafeBytes(of: totals.digest.littleEndian) { Array($0) })
        row.write(Int64(totals.livingObjects))
        row.write(Int64(totals.objectBytes))
        row.write(head)
        row.write(witness != nil)
        guard let witness else { return }
        row.write(witness.seq)
        row.write(withUnsafeBytes(of: witness.hash.littleEndian) { Array($0) })
    }
}

extension Fold {
    /// The rows of the objects that are not in memory; nil: all objects are in memory.
    var storedObjects: StoredObjects? { objectSource as? StoredObjects }
}
