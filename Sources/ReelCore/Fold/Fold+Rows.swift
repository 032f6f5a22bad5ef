/// The storage form of a stream's state: one row of bytes for each object or tombstone, one for each site, and one for
/// the rest. A row contains the whole state of its subject, including the histories of texts. A fold made from rows
/// therefore continues exactly as the original.
extension Fold {
    /// Returns the key of the object or tombstone in a slot, which is also the key of its row. The key consists of the
    /// model, a zero byte, and the id, both escaped as in canonical JSON.
    public func key(ofObject slot: Int) -> [UInt8] { objects[slot].key }

    /// Appends the row of an object or tombstone.
    public func writeRow(ofObject slot: Int, to bytes: inout [UInt8]) {
        var row = RowWriter(bytes)
        bytes = []
        write(objects[slot], to: &row)
        bytes = row.bytes
    }

    private func write(_ object: borrowing FoldedObject, to row: inout RowWriter) {
        row.write(object.state == .alive)
        row.write(object.seq)
        guard object.state == .alive else { return }
        row.write(Int64(object.fields.count))
        object.fields.withUnsafeBufferPointer { fields in
            for index in fields.indices { write(fields[index], to: &row) }
        }
    }

    private func write(_ field: borrowing FoldedField, to row: inout RowWriter) {
        row.write(quoted: field.name)
        row.write(field.writer)
        switch field.value {
        case .plain(let value):
            row.write(false)
            row.write(value)
        case .text(let text):
            row.write(true)
            write(text, to: &row)
        }
    }

    private func write(_ text: SplicedText, to row: inout RowWriter) {
        row.write(text.written != nil)
        if let written = text.written { row.write(written) }
        text.forEachRun(above: horizon) { run, bytes in
            row.write(true)
            row.write(quoted: bytes)
            row.write(run.inserted)
            let deleters = run.deleters
            row.write(Int64(deleters.count))
            for mark in deleters { row.write(mark) }
        }
        row.write(false)
    }

    /// Appends the row of a site; appends nothing if the site is unknown.
    public func writeRow(ofSite site: Site, to bytes: inout [UInt8]) {
        guard let state = sites[site] else { return }
        var row = RowWriter(bytes)
        row.write(state.op)
        row.write(state.seq)
        row.write(state.lost.all)
        row.write(state.end)
        row.write(state.by != nil)
        if let by = state.by { row.write(quoted: by) }
        row.write(Int64(state.lost.count))
        for field in state.lost.fields {
            field.split { model, id, name in
                for part in [model, id, name] { row.write(quoted: part) }
            }
            row.write(field.seq)
        }
        bytes = row.bytes
    }

    /// Appends the row of the rest: the number of consumed events, the marks, the next epoch, the last retirement of
    /// sites.
    public func writeHead(to bytes: inout [UInt8]) {
        var row = RowWriter(bytes)
        row.write(consumed)
        row.write(Int64(marks.count))
        for mark in marks { row.write(mark) }
        row.write(next != nil)
        if let next { row.write(Array(next.description.utf8)) }
        row.write(retired)
        bytes = row.bytes
    }
}

/// Creates a fold from its rows, in any order. Throws `internal` for a row that `Fold` cannot have written, or
/// `bad_json` if the row holds invalid JSON.
public struct FoldLoader: Sendable {
    private var fold: Fold

    /// Creates a loader of a stream that was folded up to `seq`.
    ///
    /// - Parameters:
    ///   - stream: the name of the stream.
    ///   - partition: the number of the partition that contains the stream.
    ///   - epoch: the epoch of the log that the seqs belong to.
    ///   - seq: the last seq of the partition that was folded.
    ///   - head: the bytes that `writeHead` wrote.
    ///   - listsChanges: see `Fold.init`.
    ///   - source: the rows of the objects and tombstones, which are then not added; nil: they are added.
    /// - Throws: `internal` for a head that `writeHead` cannot have written.
    public init(
        stream: StreamName,
        partition: Int,
        epoch: Epoch,
        seq: Seq,
        head: Bytes,
        listsChanges: Bool = false,
        source: (any ObjectSource)? = nil
    ) throws(ReelError) {
        fold = Fold(
            stream: stream,
            partition: partition,
            epoch: epoch,
            listsChanges: listsChanges,
            source: source
        )
        fold.seq = seq
        var row = RowReader(head)
        fold.consumed = try row.number()
        for _ in 0..<(try row.count()) { fold.marks.append(try row.number()) }
        guard fold.marks.count <= Limits.marks else { throw row.damaged("at most \(Limits.marks) marks") }
        if try row.flag() {
            guard let next = Epoch(bytes: try row.data()) else { throw row.damaged("an epoch") }
            fold.next = next
        }
        fold.retired = try row.number()
        try row.end()
    }

    /// Adds the row of an object or tombstone.
    public mutating func add(objectKey key: Bytes, row bytes: Bytes) throws(ReelError) {
        let (model, id) = try Self.parts(of: key, of: bytes)
        var object = ObjectTable.object(model: model, id: id, seq: .none)
        try Self.read(bytes, into: &object)
        if object.state == .alive {
            fold.set(model: model, id: id, seq: object.seq, fields: object.fields)
        } else {
            fold.bury(model: model, id: id, at: object.seq)
        }
    }

    /// Throws unless the fold can have written the key of a row.
    static func check(_ key: [UInt8], of row: Bytes) throws(ReelError) {
        let error: ReelError? = key.withUnsafeBytes { key in
            do throws(ReelError) {
                _ = try parts(of: key, of: row)
                return nil
            } catch {
                return error
            }
        }
        if let error { throw error }
    }

    /// Returns the model and the id of a row's key.
    private static func parts(of key: Bytes, of row: Bytes) throws(ReelError) -> (model: Bytes, id: Bytes) {
        let row = RowReader(row)
        guard let separator = key.firstIndex(of: 0) else { throw row.damaged("a key of model and id") }
        let (model, id) = (Bytes(rebasing: key[..<separator]), Bytes(rebasing: key[(separator + 1)...]))
        for name in [model, id] { try CanonicalJSON.check(quoted: name) }
        return (model, id)
    }

    /// Reads the row of an object or tombstone into a living object without fields.
    static func read(_ bytes: Bytes, into object: inout FoldedObject) throws(ReelError) {
        var row = try RowFields(bytes)
        object.seq = row.seq
        object.fields.reserveCapacity(min(row.count, Limits.fields))
        while let field = try row.next() {
            let value: FieldValue =
                switch field.content {
                case .plain(let value): .plain(Array(value))
                case .text(let text): .text(text)
                }
            object.insert(
                FoldedField(name: Array(field.name), value: value, writer: field.writer),
                at: object.fields.count
            )
        }
        if row.isDeleted { object.bury(at: row.seq) }
    }

    /// Adds the row of a site.
    public mutating func add(site: Site, row bytes: Bytes) throws(ReelError) {
        var row = RowReader(bytes)
        var lost = LostTexts()
        let (op, seq) = (try row.number(), try row.number())
        lost.all = try row.number()
        let end = try row.number()
        let by = try row.flag() ? try row.text() : nil
        for _ in 0..<(try row.count()) {
            let (model, id, name) = (try row.text(), try row.text(), try row.text())
            guard lost.append(model: model, id: id, name: name, seq: try row.number()) else {
                throw row.damaged("lost fields in order")
            }
        }
        try row.end()
        fold.set(site, by: by, op: op, seq: seq, lost: lost, end: end)
    }

    /// Returns the fold of the sites that were added and of the rows in the source. Its list of changes is empty.
    ///
    /// - Parameter totals: the totals of the fold that was stored.
    public consuming func finish(totals: FoldTotals) -> Fold {
        fold.restore(totals)
        return finish()
    }

    /// Returns the fold of all rows that were added. Its list of changes is empty.
    public consuming func finish() -> Fold {
        fold.agingObjects.sort()
        fold.agingSites.sort()
        fold.unwritten.sites = []
        fold.forget()
        _ = fold.takeChanges()
        return fold
    }
}

extension CanonicalJSON {
    /// Throws `bad_json` unless the bytes can be the content of a canonical string, between the quotes.
    fileprivate static func check(quoted text: Bytes) throws(ReelError) {
        let quoted = [ASCII.quote] + text + [ASCII.quote]
        let fault: ReelError? = quoted.withUnsafeBytes { bytes in
            do throws(ReelError) {
                try check(bytes)
                return nil
            } catch {
                return error
            }
        }
        if let fault { throw fault }
    }
}
