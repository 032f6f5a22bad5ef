import ReelCore
import ReelNode
import ReelSQLite

/// Reads the state of streams out of a partition's file, beside the thread that writes it: each answer is one
/// consistent read of a committed state, however the writer goes on meanwhile. Blocks; for a worker's thread.
struct StateReader: Sendable {
    let place: FilePlace
    let identity: SnapshotFile.Identity
    /// Where large answers are spooled.
    let folder: String

    /// The rows are not what was written.
    struct Damage: Error {
        /// Which of the place's files it was.
        var file: Int
        var reason: String
    }

    /// An answer in lines.
    struct Lines: Sendable {
        /// The position that the lines are true of.
        var seq: Seq
        var spool: Spool
    }

    /// The position that answers are true of at this moment.
    func seq() throws -> Seq {
        try reading { _, position in position.seq }
    }

    /// The lines of a snapshot, or with `after` ≥ 0 of a delta.
    func lines(of stream: StreamName, after: Seq) throws -> Lines {
        var fold = try read(stream)
        guard after <= fold.seq else { throw Self.behind(fold.seq, after) }
        var writer = try fold.snapshot(after: after)
        let spool = try Spool(folder: folder) { writer.next(into: &$0) }
        return Lines(seq: fold.seq, spool: spool)
    }

    /// What is true of one seq is not enough for who needs another.
    static func behind(_ seq: Seq, _ needed: Seq) -> SnapshotError {
        SnapshotError(.nodeBehind, "this node has folded to seq \(seq), expected at least \(needed)")
    }

    /// A stream as of the file's position.
    private func read(_ stream: StreamName) throws -> Fold {
        try reading { connection, position in
            var fold =
                try StoredStream(stream, identity: identity, seq: position.seq, in: connection)?.fold
                ?? Fold(stream: stream, partition: identity.partition, epoch: identity.epoch)
            if let following = position.following {
                fold.end(at: position.seq, next: following)
            } else {
                fold.advance(to: position.seq)
            }
            return fold
        }
    }

    /// One object or tombstone; nil if there is none.
    func object(of stream: StreamName, model: String, id: String) throws -> ObjectState? {
        try reading { connection, position -> ObjectState? in
            let key = StoredStream.key(model: model, id: id)
            let find = try connection.prepare(
                "SELECT head, data FROM stream JOIN object ON stream = id WHERE name = ? AND key = ?"
            )
            find.bind(1, stream.description)
            find.bind(2, key)
            guard try find.step() else { return nil }
            var loader = try FoldLoader(
                stream: stream,
                partition: identity.partition,
                epoch: identity.epoch,
                seq: position.seq,
                head: find.bytes(0)
            )
            try key.withUnsafeBytes { try loader.add(objectKey: $0, row: find.bytes(1)) }
            return loader.finish().object(model: model, id: id)
        }
    }

    /// What follows a seq in a stream up to another, at most `limit` events and about so many bytes of it, from the
    /// index, and the last seq that it knows. Throws `truncated` where the index begins later, `node_behind` beyond its
    /// end.
    func page(
        of stream: StreamName,
        after: Seq,
        to: Seq = largestInteger,
        limit: Int,
        bytes: Int = EventsReply.pieceBytes
    ) throws -> (chunk: EventsChunk, head: Seq) {
        try reading { connection, position in
            let oldest = try connection.integer("SELECT value FROM meta WHERE name = 'events'") ?? position.next
            guard after + 1 >= oldest else {
                var problem = Problem(.truncated, "found after \(after), expected at least \(oldest - 1)")
                problem.first = oldest
                problem.head = position.seq
                throw problem
            }
            guard after <= position.seq else {
                throw SnapshotError(.nodeBehind, "found after \(after), this node has read to \(position.seq)")
            }
            let end = min(to, position.seq)
            var chunk = EventsChunk(from: after + 1, to: end)
            if let stored = try StoredStream.id(of: stream, in: connection) {
                let chunks = try connection.prepare(
                    "SELECT data FROM event WHERE stream = ? AND last > ? ORDER BY last"
                )
                chunks.bind(1, stored)
                chunks.bind(2, after)
                var last = after
                var (isOver, isFull) = (false, false)
                while !isOver, !isFull, try chunks.step() {
                    let isWhole = EventChunk.forEach(in: chunks.bytes(0)) { seq, _, value in
                        guard seq > after else { return true }
                        isOver = seq > end
                        guard !isOver else { return false }
                        isFull = chunk.count >= limit || chunk.body.count >= bytes
                        guard !isFull else { return false }
                        chunk.append(seq: seq, value: value)
                        last = seq
                        return true
                    }
                    guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
                }
                chunks.reset()
                if isFull { chunk.to = last }
            }
            return (chunk, position.seq)
        }
    }

    /// Runs `body` in one consistent read of the file.
    func reading<R>(_ body: (Connection, StoredPosition) throws -> R) throws -> R {
        let file = place.current
        do {
            let (connection, position) = try place.beginRead()
            defer { connection.rollback() }
            guard !position.isInsideSeeds else {
                throw SnapshotError(.nodeBehind, "this node is still reading what the epoch begins with; ask again")
            }
            return try body(connection, position)
        } catch let error where SnapshotFile.isDamage(error) {
            throw Damage(file: file, reason: "\(error)")
        }
    }
}
