internal import ReelCore

// A load: a snapshot or delta that is written as it arrives, to a generation of its own. The state that the app sees
// changes only with the commit at its end.
extension DeviceStore {
    /// A snapshot that was cut.
    struct Load {
        /// The fold of what was written.
        var fold: Fold
        /// The key of the last object that was written.
        var lastKey: [UInt8]
        /// The seq of the first answer, as of which the objects up to that one are there at least.
        var after: Seq
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
            return Load(fold: fold, lastKey: stored.lastKey, after: stored.after)
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    /// Writes the rows that a load has received since the last call. Call it inside `commit`.
    ///
    /// - Parameters:
    ///   - fold: the fold of the load.
    ///   - progress: the key of the last object that the load has read, and the seq of its first answer; nil for a load
    ///     that is not continued.
    ///   - row: the stream's row.
    ///   - changes: receives the changes.
    func writeLoad(
        _ fold: inout Fold,
        progress: (lastKey: [UInt8], after: Seq)?,
        _ row: Int64,
        _ changes: inout StorageChanges
    ) throws(ReelError) {
        guard let objects = fold.storedObjects, let upper = objects.layers.first else { return }
        let totals = fold.totals()
        try fold.takeUnwrittenRows { (changed) throws(ReelError) in
            Self.write(changed, to: upper, marksRemoval: objects.layers.count > 1, &changes)
        }
        guard let progress, objects.layers.count == 1 else { return }
        writeSites(of: &fold, to: upper, &changes)
        let load = LoadRow(
            state: StateRow(objects.layers, fold, totals, nil),
            partition: fold.partition,
            epoch: fold.epoch,
            lastKey: progress.lastKey,
            after: progress.after
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
    var after: Seq

    init(state: StateRow, partition: Int, epoch: Epoch, lastKey: [UInt8], after: Seq) {
        (self.state, self.partition, self.epoch) = (state, partition, epoch)
        (self.lastKey, self.after) = (lastKey, after)
    }

    init(_ content: Bytes) throws(ReelError) {
        var row = RowReader(content)
        state = try StateRow(&row)
        partition = Int(try row.number())
        guard let epoch = Epoch(try row.text()) else { throw row.damaged("an epoch") }
        self.epoch = epoch
        lastKey = Array(try row.data())
        after = try row.number()
        try row.end()
    }

    var content: [UInt8] {
        var row = RowWriter([])
        state.write(to: &row)
        row.write(Int64(partition))
        row.write(Array(epoch.description.utf8))
        row.write(lastKey)
        row.write(after)
        return row.bytes
    }
}
