extension Fold {
    /// Creates the state that a whole snapshot describes. Errors as in `SnapshotReader`.
    public init(snapshot: Bytes, listsChanges: Bool = false) throws(ReelError) {
        var reader = SnapshotReader(listsChanges: listsChanges)
        try reader.read(lines: snapshot)
        self = try reader.finish()
    }

    /// Applies the lines of a delta. After an error the fold is unchanged. Errors as in `SnapshotReader`.
    public mutating func apply(delta: Bytes) throws(ReelError) {
        var reader = SnapshotReader(onto: self)
        try reader.read(lines: delta)
        self = try reader.finish()
    }

    // MARK: State from outside; sort `agingObjects` and `agingSites` afterwards

    /// Sets an entry of the version vector.
    mutating func set(_ site: Site, by: Bytes?, op: Op, seq: Seq, lost: LostTexts, end: Seq) {
        let index = sites.index(forKey: site) ?? begin(site, by: by)
        touch(site: site, at: index)
        sites.values[index].by = by.map { Array($0) }
        sites.values[index].op = op
        sites.values[index].seq = seq
        setLost(lost, of: site, at: index)
        if sites.values[index].end > .none { endedSites -= 1 }
        sites.values[index].end = .none
        if end > .none { self.end(site, at: index, seq: end) }
    }

    /// Sets an object, and replaces any object or tombstone with the same key.
    mutating func set(model: Bytes, id: Bytes, seq: Seq, fields: [FoldedField]) {
        let slot = emptyObject(model: model, id: id, seq: seq)
        objects[slot].replaceFields(by: fields)
        for index in fields.indices {
            guard case .text = fields[index].value else { continue }
            let seq = fields[index].writer.seq
            objects[slot].queued = max(objects[slot].queued, seq)
            agingObjects.push(slot, at: seq)
        }
    }

    /// Sets a tombstone, and replaces any object or tombstone with the same key.
    mutating func bury(model: Bytes, id: Bytes, at seq: Seq) {
        let slot = emptyObject(model: model, id: id, seq: seq)
        objects[slot].bury(at: seq)
        agingObjects.push(slot, at: seq)
    }

    /// Returns the slot of a living object without fields.
    private mutating func emptyObject(model: Bytes, id: Bytes, seq: Seq) -> Int {
        guard let slot = locate(model: model, id: id) else { return makeObject(model: model, id: id, seq: seq) }
        touch(object: slot)
        objects[slot].clear(at: seq)
        return slot
    }
}

extension SnapshotReader {
    /// Reads whole lines, each of which ends with a line feed.
    public mutating func read(lines: Bytes) throws(ReelError) {
        var start = 0
        while start < lines.count {
            guard let end = lines[start...].firstIndex(of: UInt8(ascii: "\n")) else {
                throw ReelError(.badFrame, "found a last line of a snapshot without its line feed")
            }
            try read(line: Bytes(rebasing: lines[start..<end]))
            start = end + 1
        }
    }
}
