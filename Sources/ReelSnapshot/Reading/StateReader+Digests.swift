import ReelCore
import ReelNode
import ReelSQLite

extension StateReader {
    /// Returns the digests of streams of this partition, in the order of `streams`. Reads one row for each stream: each
    /// write of a stream stores the digest of its state, which is correct until the next write.
    ///
    /// - Parameters:
    ///   - streams: The streams, each with the seq of the client's state.
    ///   - goal: The lowest seq as of which a digest may be.
    func digests(
        of streams: some Sequence<DigestsRequest.HeldState>,
        goal: Seq
    ) throws -> [Result<StreamDigest.State, Problem>] {
        try reading(nil) { connection, position in
            let row = try connection.prepare("SELECT \(StoredRow.streamColumns) FROM stream WHERE name = ?")
            return try streams.map { held in
                row.reset()
                row.bind(1, held.stream.description)
                let own = position.of(held.stream)
                let fold: Fold
                var digest: UInt64?
                if try row.step() {
                    try StoredRow.checkStream(row)
                    digest = UInt64(bitPattern: row.integer(3))
                    fold = try FoldLoader(
                        stream: held.stream,
                        partition: identity.partition,
                        epoch: identity.epoch,
                        seq: own.seq,
                        head: row.bytes(2)
                    ).finish()
                } else {
                    try StoredRow.checkAbsence(of: held.stream, in: connection)
                    fold = Fold(stream: held.stream, partition: identity.partition, epoch: identity.epoch)
                }
                return digestState(of: fold, digest, at: own, for: held, goal: goal)
            }
        }
    }

    /// Returns the entry of a stream. `fold` contains no objects and sites; a nil `digest` means that there are none.
    private func digestState(
        of fold: Fold,
        _ digest: UInt64?,
        at position: StoredPosition,
        for held: DigestsRequest.HeldState,
        goal: Seq
    ) -> Result<StreamDigest.State, Problem> {
        let needed = max(goal, held.seq)
        guard position.seq >= needed else { return .failure(Self.behind(position.seq, needed)) }
        guard held.seq == .none || held.seq >= fold.horizon else {
            return .failure(
                Problem(
                    .truncated,
                    "found a state as of seq \(held.seq), expected at least the horizon, \(fold.horizon)"
                )
            )
        }
        var fold = fold
        return .success(
            StreamDigest.State(
                partition: identity.partition,
                seq: position.seq,
                consumed: fold.consumed,
                digest: digest ?? fold.digest(),
                next: position.following
            )
        )
    }
}
