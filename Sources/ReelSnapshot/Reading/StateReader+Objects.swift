import ReelCore
import ReelNode
import ReelSQLite

extension StateReader {
    /// A snapshot or delta as lines.
    struct Lines: Sendable {
        /// The seq as of which the lines are correct.
        var seq: Seq
        var spool: Spool
        /// True if no event was ever published to the stream.
        var isUnpublished = false
    }

    /// Returns the lines of a snapshot, or with `after` ≥ 0 of the delta since the seq `after`. With a `cut` they are
    /// those of the rest of an answer that was cut. Holds rows of at most `keptBytes`, and one more.
    func lines(of stream: StreamName, after: Seq, beyond cut: SnapshotCut? = nil) throws -> Lines {
        let lines: Result<Lines, ReelError> = try reading(stream) { connection, position in
            let stored = try StoredStream(sitesOf: stream, identity: identity, seq: position.seq, in: connection)
            var fold = stored?.fold ?? Fold(stream: stream, partition: identity.partition, epoch: identity.epoch)
            if let following = position.following {
                fold.apply(.end(following), seq: position.seq)
            } else {
                fold.advance(to: position.seq)
            }
            guard after <= fold.seq else { throw Self.behind(fold.seq, after) }
            var writer: RowSnapshotWriter
            do throws(ReelError) {
                writer = try fold.rowSnapshot(after: after, beyond: cut, keptMost: keptBytes)
            } catch {
                // The request is wrong, and no row is damaged.
                return .failure(error)
            }
            if let stored { try survey(stored, stream, &writer, connection) }
            let spool = try spool(&writer, of: stored?.id, connection)
            return .success(Lines(seq: fold.seq, spool: spool, isUnpublished: stored == nil))
        }
        return try lines.get()
    }

    /// Passes all rows of a stream to the writer, and compares them with the digest.
    private func survey(
        _ stored: StoredStream,
        _ stream: StreamName,
        _ writer: inout RowSnapshotWriter,
        _ connection: Connection
    ) throws {
        let rows = try ObjectRows(of: stored.id, in: connection)
        while let row = try rows.next() {
            try writer.survey(key: row.key, row: row.data, digest: row.digest, agingSeq: row.agingSeq)
        }
        guard writer.digest == stored.digest else { throw StoredStream.otherDigest(stream) }
    }

    /// Spools the lines. `number` is the number of the stream in the file; nil: it has no rows.
    private func spool(
        _ writer: inout RowSnapshotWriter,
        of number: Int64?,
        _ connection: Connection
    ) throws -> Spool {
        var passes: [(kind: RowSnapshotWriter.Kind, rows: ObjectRows)] = []
        if let number, writer.needsRows {
            for kind in [RowSnapshotWriter.Kind.tombstones, .objects] where writer.lineCount(kind) > 0 {
                // All tombstones are among the aging rows.
                passes.append((kind, try ObjectRows(of: number, onlyAging: kind == .tombstones, in: connection)))
            }
        }
        var hasBegun = false
        return try Spool(folder: folder) { bytes in
            guard hasBegun else {
                hasBegun = true
                writer.begin(into: &bytes)
                return true
            }
            guard let pass = passes.last else {
                writer.end(into: &bytes)
                return false
            }
            if let row = try pass.rows.next() {
                try writer.write(pass.kind, key: row.key, row: row.data, into: &bytes)
            } else {
                passes.removeLast()
            }
            return true
        }
    }

    /// Returns one object or tombstone; nil: there is none.
    func object(of stream: StreamName, model: String, id: String) throws -> ObjectState? {
        try reading(stream) { connection, _ -> ObjectState? in
            guard let row = try StoredStream.row(of: stream, in: connection) else { return nil }
            let (key, number) = (ObjectKey.stored(model: model, id: id), row.integer(0))
            let find = try connection.prepare(
                "SELECT \(StoredRow.objectColumns) FROM object WHERE stream = ? AND key = ?"
            )
            find.bind(1, number)
            find.bind(2, key)
            guard try find.step() else {
                try StoredRow.checkAbsence(ofObject: key, of: number, connection)
                return nil
            }
            try StoredRow.checkObject(find)
            return try ObjectState(row: find.bytes(4), key: ObjectKey.escaped(find.bytes(1)))
        }
    }
}
