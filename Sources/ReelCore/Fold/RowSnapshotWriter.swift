/// Produces the lines of a snapshot, a delta or a rest from the rows of a stream. It holds the head, the sites, and a
/// limited number of rows, so a stream may be larger than memory.
///
/// The caller passes all rows, ordered by the bytes of model and id. `survey` names the sites of the lines and adds up
/// the digest. Then `begin` writes the first lines. If `needsRows`, the caller passes the rows again, once for each
/// kind that has lines: all objects precede all tombstones. `end` writes the last line.
package struct RowSnapshotWriter: Sendable {
    /// The kind of rows that get their lines together.
    package enum Kind: Sendable {
        case objects, tombstones
    }

    private let fold: Fold
    private var lines: SnapshotLines
    private var sum: UInt64
    /// The rows that have lines, objects and tombstones mixed. Empty once they exceed `keptMost`.
    private var kept: [FoldedObject] = []
    private var keptBytes = 0
    private let keptMost: Int
    private var (objectLines, tombstoneLines) = (0, 0)

    fileprivate init(_ fold: Fold, after: Seq, cut: SnapshotCut?, keptMost: Int) {
        var fold = fold
        self.keptMost = keptMost
        sum = fold.digest()
        self.fold = fold
        lines = SnapshotLines(fold, after: after, cut: cut)
    }

    /// The digest of the state: that of the sites, the head, and all surveyed rows.
    package var digest: UInt64 { sum }

    /// True if the caller must pass the rows again, because those that have lines are not kept.
    package var needsRows: Bool { keptBytes > keptMost }

    /// The number of lines of a kind.
    package func lineCount(_ kind: Kind) -> Int { kind == .objects ? objectLines : tombstoneLines }

    /// Takes account of a row.
    ///
    /// - Parameters:
    ///   - key: the key of the row.
    ///   - row: the row's bytes.
    ///   - digest: the stored part of the row in the digest.
    ///   - agingSeq: the stored `agingSeq` of the row.
    /// - Throws: `internal` or `bad_json` if a stored part does not fit the row. It also throws for a tombstone that
    ///   the horizon has passed: the fold has forgotten it, so its row must be gone.
    package mutating func survey(key: [UInt8], row: Bytes, digest: UInt64, agingSeq: Seq?) throws(ReelError) {
        sum &+= digest
        let (isAlive, seq) = try FoldedRow.stateAndSeq(of: row)
        guard isAlive || seq > fold.horizon else {
            throw ReelError(.internal, "found the row of a tombstone that is forgotten")
        }
        // Most rows have no line in a delta, and need not be decoded.
        guard seq > lines.floor else { return }
        var folded = try FoldedRow(key: key, row: row)
        guard lines.lists(folded.object) else { return }
        guard folded.digest() == digest, folded.agingSeq == agingSeq else {
            throw ReelError(.internal, "found a row with the digest of another one")
        }
        lines.nameSites(of: folded.object)
        if isAlive { objectLines += 1 } else { tombstoneLines += 1 }
        guard !needsRows else { return }
        keptBytes += folded.object.memory
        if needsRows { kept = [] } else { kept.append(folded.object) }
    }

    /// Appends the first line and the lines of the sites, after the last call of `survey`. Appends those of the rows,
    /// too, unless `needsRows`.
    ///
    /// - Parameter output: the bytes to append to.
    package mutating func begin(into output: inout [UInt8]) {
        lines.finishNaming()
        lines.writeFirst(to: &output)
        output.append(UInt8(ascii: "\n"))
        for site in lines.listed {
            lines.write(site: site, to: &output)
            output.append(UInt8(ascii: "\n"))
        }
        for object in kept where object.state == .alive { append(object, to: &output) }
        for object in kept where object.state != .alive { append(object, to: &output) }
        kept = []
    }

    /// Appends the line of a row, if the row is of this kind and has a line.
    ///
    /// - Parameters:
    ///   - kind: the kind of rows that get their lines now.
    ///   - key: the key of the row.
    ///   - row: the row's bytes.
    ///   - output: the bytes to append to.
    /// - Throws: `internal` or `bad_json` for bytes that the fold cannot have written.
    package func write(_ kind: Kind, key: [UInt8], row: Bytes, into output: inout [UInt8]) throws(ReelError) {
        let (isAlive, seq) = try FoldedRow.stateAndSeq(of: row)
        guard isAlive == (kind == .objects), seq > lines.floor else { return }
        let row = try FoldedRow(key: key, row: row)
        if lines.lists(row.object) { append(row.object, to: &output) }
    }

    private func append(_ object: FoldedObject, to output: inout [UInt8]) {
        lines.write(object, to: &output)
        output.append(UInt8(ascii: "\n"))
    }

    /// Appends the last line.
    package func end(into output: inout [UInt8]) {
        lines.writeLast(count: lines.listed.count + objectLines + tombstoneLines, digest: sum, to: &output)
        output.append(UInt8(ascii: "\n"))
    }
}

extension Fold {
    /// Returns a writer of the lines of a snapshot, of a delta if `after` ≥ 0, or of a rest if there is a cut. The fold
    /// holds the head and the sites, and no object.
    ///
    /// - Parameters:
    ///   - after: the seq after which the lines have the changes.
    ///   - cut: the cut of the answer that a rest continues.
    ///   - keptMost: the memory up to which the writer keeps the rows that have lines, in bytes.
    /// - Throws: as `snapshot(after:)` and `rest(after:beyond:)`.
    package func rowSnapshot(
        after: Seq,
        beyond cut: SnapshotCut?,
        keptMost: Int
    ) throws(ReelError) -> RowSnapshotWriter {
        try checkAnswer(after: after, beyond: cut)
        return RowSnapshotWriter(self, after: max(after, .none), cut: cut, keptMost: keptMost)
    }
}
