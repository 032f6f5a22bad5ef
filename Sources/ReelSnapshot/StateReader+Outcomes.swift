import ReelCore
import ReelNode
import ReelSQLite

extension StateReader {
    /// What became of events of a stream, in the order of the acks, from the index. Throws `truncated` for a seq that
    /// it no longer has, and `bad_request` where another event stands.
    func outcomes(of acks: [ServerFrame.Acked], in stream: StreamName) throws -> [Outcome] {
        try reading { connection, position in
            guard let highest = acks.map(\.seq).max(), highest <= position.seq else {
                throw SnapshotError(.nodeBehind, "this node has folded to seq \(position.seq); ask again")
            }
            let oldest = position.oldestEvent
            let row = try StoredStream.row(of: stream, in: connection)
            var chunks = try row.map { row in
                try StoredChunks(of: row.integer(0), from: oldest, end: row.integer(5), in: connection)
            }
            var found: [Seq: (author: (site: Site, op: Op), outcome: StoredOutcome)] = [:]
            let wanted = Set(acks.map(\.seq))
            var looked = Seq.none
            for seq in acks.map(\.seq).sorted() where seq > looked {
                chunks?.seek(seq)
                guard let (last, data) = try chunks?.next() else { break }
                looked = last
                let isWhole = EventChunk.forEach(in: data) { seq, outcome, value in
                    guard wanted.contains(seq) else { return true }
                    found[seq] = EventIntake.author(of: value).map { ($0, outcome) }
                    return true
                }
                guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
            }
            return try acks.map { ack in
                guard let (author, outcome) = found[ack.seq], author == (ack.site, ack.op) else {
                    guard ack.seq >= oldest else {
                        throw Problem(.truncated, "found seq \(ack.seq), the index begins at \(oldest)")
                    }
                    throw Problem(.badRequest, "at seq \(ack.seq) stands no event \(ack.op) of \(ack.site)")
                }
                guard let known = outcome.outcome else {
                    throw Problem(.truncated, "the event at seq \(ack.seq) was indexed without its outcome")
                }
                return known
            }
        }
    }
}
