internal import ReelCore

// A load: a snapshot or delta that is written as it arrives, to a generation of its own. The state that the app sees
// changes only with the commit at its end.
extension DeviceStore {
    /// The fold of a load that was cut, with the key of the last object that was written.
    struct Load {
        var fold: Fold
        var lastKey: [UInt8]
    }

    /// Returns the fold of a snapshot that was cut; nil if there is none that can be continued.
    func readLoad(_ name: StreamName, _ row: Int64) throws(ReelError) -> Load? {
        let snapshot = try storage.snapshot()
        do throws(ReelError) {
            let stored = try snapshot.sealed(StoreKey.load(row)) { (content) throws(ReelError) in
                try LoadRow(content)
            }
            guard let stored else { return nil }
            let fold = try load(
                stored.state,
                of: name,
                partition: stored.partition,
                epoch: stored.epoch,
                snapshot
            )
            return Load(fold: fold, lastKey: stored.lastKey)
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    /// Writes the rows that a load has received since the last call. Call it inside `commit`.
    ///
    /// - Parameters:
    ///   - fold: the fold of the load.
    ///   - lastKey: the key of the last object that the load has read; nil for a load that is not continued after a
    ///     restart.
    ///   - row: the stream's row.
    ///   - changes: receives the changes.
    func writeLoad(
        _ fold: inout Fold,
        lastKey: [UInt8]?,
        _ row: Int64,
        _ changes: inout StorageChanges
    ) throws(ReelError) {
        guard let objects = fold.storedObjects, let upper = objects.layers.first else { return }
        let totals = fold.totals()
        try fold.takeUnwrittenRows { (changed) throws(ReelError) in
            Self.write(changed, to: upper, marksRemoval: objects.layers.count > 1, &changes)
        }
        guard let lastKey, objects.layers.count == 1 else { return }
        writeSites(of: &fold, to: upper, &changes)
        let load = LoadRow(
            state: StateRow(objects.layers, fold, totals, nil),
            partition: fold.partition,
            epoch: fold.epoch,
            lastKey: lastKey
        )
        changes.seal(load.content, for: StoreKey.load(row))
    }

    /// Gives up the load of a stream: its rows are removed later.
    func dropLoad(_ row: Int64, layers: [Int64]) throws(ReelError) {
        try commit(durably: false) { changes throws(ReelError) in changes.remove(StoreKey.load(row)) }
        if let upper = layers.first { unusedGenerations.append(upper) }
    }
}

/// The value of a load: what was received of the state, and the last object.
private struct LoadRow {
    var state: StateRow
    var partition: Int
    var epoch: Epoch
    var lastKey: [UInt8]

    init(state: StateRow, partition: Int, epoch: Epoch, lastKey: [UInt8]) {
        (self.state, self.partition, self.epoch, self.lastKey) = (state, partition, epoch, lastKey)
    }

    init(_ content: Bytes) throws(ReelError) {
        var row = RowReader(content)
        state = try StateRow(&row)
        partition = Int(try row.number())
        guard let epoch = Epoch(try row.text()) else { throw row.damaged("an epoch") }
        self.epoch = epoch
        lastKey = Array(try row.data())
        try row.end()
    }

    var content: [UInt8] {
        var row = RowWriter([])
        state.write(to: &row)
        row.write(Int64(partition))
        row.write(Array(epoch.description.utf8))
        row.write(lastKey)
        return row.bytes
    }
}
