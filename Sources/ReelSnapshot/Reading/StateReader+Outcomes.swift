import ReelCore
import ReelLog
import ReelNode
import ReelSQLite

extension StateReader {
    /// An event of the index.
    private struct Indexed {
        var author: (site: Site, op: Op)?
        var outcome: StoredOutcome
        /// The record's value of a duplicate; empty for other events, which do not need it.
        var value: [UInt8] = []
    }

    /// Returns the outcomes of events of a stream from the index, in the order of `acks`. For a duplicate it also
    /// searches the index for the copy that the fold consumed.
    ///
    /// - Throws: `node_behind` for a seq that is not folded yet. `truncated` for a seq that the index no longer holds,
    ///   or holds without an outcome. `bad_request` if the record at the seq is not the event of the ack.
    func outcomes(of acks: [ServerFrame.Acked], in stream: StreamName) throws -> [AckOutcome] {
        try reading(stream) { connection, position in
            guard let highest = acks.map(\.seq).max(), highest <= position.seq else {
                throw SnapshotError(.nodeBehind, "this node has folded to seq \(position.seq); ask again")
            }
            let oldest = position.oldestEvent
            let row = try StoredStream.row(of: stream, in: connection)
            var chunks = try row.map { row in
                try StoredChunks(of: row.integer(0), from: oldest, end: row.integer(5), in: connection)
            }
            // The chunk before the first seq of the index may have been trimmed, so earlier seqs are not looked up.
            let found = try events(at: acks.map(\.seq).filter { $0 >= oldest }, in: &chunks)
            var rows = try acks.map { ack in
                guard let event = found[ack.seq], let author = event.author, author == (ack.site, ack.op) else {
                    guard ack.seq >= oldest else {
                        var problem = Problem(.truncated, "found seq \(ack.seq), the index begins at \(oldest)")
                        problem.first = oldest
                        throw problem
                    }
                    throw Problem(.badRequest, "found no event \(ack.op) of \(ack.site) at seq \(ack.seq)")
                }
                guard let known = event.outcome.outcome else {
                    throw Problem(.truncated, "the event at seq \(ack.seq) was indexed without its outcome")
                }
                return AckOutcome(ack, known)
            }
            if let row, var chunks {
                try addFirstCopies(to: &rows, found, in: &chunks, behind: oldest) { site throws in
                    try lastConsumed(of: site, in: stream, row, position, connection)
                }
            }
            return rows
        }
    }

    /// Returns the events of a stream at `seqs`; events that the index does not hold are missing in the result.
    private func events(at seqs: [Seq], in chunks: inout StoredChunks?) throws -> [Seq: Indexed] {
        var found: [Seq: Indexed] = [:]
        let wanted = Set(seqs)
        var looked = Seq.none
        for seq in seqs.sorted() where seq > looked {
            chunks?.seek(seq)
            guard let (last, data) = try chunks?.next() else { break }
            looked = last
            let isWhole = EventChunk.forEach(in: data) { seq, outcome, value in
                guard wanted.contains(seq) else { return true }
                let isDuplicate = outcome.outcome == .duplicate
                found[seq] = Indexed(
                    author: EventIntake.author(of: value),
                    outcome: outcome,
                    value: isDuplicate ? Array(value) : []
                )
                return true
            }
            guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
        }
        return found
    }

    /// The maximum size of the chunks that one request reads to find consumed copies, in bytes.
    private static let copiesBytes = 4 << 20

    private struct EventName: Hashable {
        var site: Site
        var op: Op
    }

    /// Adds the consumed copy to each duplicate. Searches backwards from the last events of the sites, through a
    /// bounded part of the index: a copy that is further back stays unknown.
    private func addFirstCopies(
        to rows: inout [AckOutcome],
        _ found: [Seq: Indexed],
        in chunks: inout StoredChunks,
        behind oldest: Seq,
        lastConsumed: (Site) throws -> Seq
    ) throws {
        var wanted: [EventName: [Int]] = [:]
        var highest = Seq.none
        for (index, row) in rows.enumerated() where row.outcome == .duplicate {
            wanted[EventName(site: row.ack.site, op: row.ack.op), default: []].append(index)
            highest = max(highest, row.ack.seq)
        }
        guard !wanted.isEmpty else { return }
        var next = min(highest, try Set(wanted.keys.map(\.site)).map(lastConsumed).max() ?? .none)
        var bytes = 0
        while !wanted.isEmpty, bytes < Self.copiesBytes, next >= oldest {
            chunks.seek(next)
            guard let (_, data) = try chunks.next() else { return }
            bytes += data.count
            next = chunks.previous
            var copies: [EventName: (seq: Seq, outcome: Outcome, value: [UInt8])] = [:]
            let isWhole = EventChunk.forEach(in: data) { seq, stored, value in
                guard let outcome = stored.outcome, outcome.isConsumed, let author = EventIntake.author(of: value)
                else { return true }
                let name = EventName(site: author.site, op: author.op)
                if wanted[name] != nil { copies[name] = (seq, outcome, Array(value)) }
                return true
            }
            guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
            for (name, copy) in copies {
                for index in wanted.removeValue(forKey: name) ?? [] where copy.seq < rows[index].ack.seq {
                    let own = found[rows[index].ack.seq]?.value ?? []
                    let isSame = !PublishedContent.contradict(own, copy.value)
                    rows[index].first = AckOutcome.First(seq: copy.seq, outcome: copy.outcome, isSame: isSame)
                }
            }
        }
    }

    /// Returns the seq of the last consumed event of a site; −1: the stream no longer knows the site.
    private func lastConsumed(
        of site: Site,
        in stream: StreamName,
        _ row: Statement,
        _ position: StoredPosition,
        _ connection: Connection
    ) throws -> Seq {
        let key = StoredStream.key(of: site)
        let find = try connection.prepare("SELECT data, hash FROM site WHERE stream = ? AND key = ?")
        find.bind(1, row.integer(0))
        find.bind(2, key)
        guard try find.step() else {
            try StoredRow.checkAbsence(ofSite: key, of: row.integer(0), connection)
            return .none
        }
        let hash = key.withUnsafeBytes { StoredRow.entry(.site, row.integer(0), $0, find.bytes(0)) }
        try StoredRow.check(hash, find, 1, "of a site of stream \(stream)")
        var loader = try FoldLoader(
            stream: stream,
            partition: identity.partition,
            epoch: identity.epoch,
            seq: position.seq,
            head: row.bytes(2)
        )
        try loader.add(site: site, row: find.bytes(0))
        return loader.finish().site(site)?.seq ?? .none
    }
}

extension Outcome {
    /// True if the fold consumed the event, so that its op is used up.
    fileprivate var isConsumed: Bool {
        switch self {
        case .applied, .rejected: true
        default: false
        }
    }
}
