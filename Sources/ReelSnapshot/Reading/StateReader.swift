import ReelCore
import ReelLog
import ReelNode
import ReelSQLite

/// Reads the state of streams from a partition's file, while another thread writes it. Each answer is one consistent
/// read of a committed state. Blocks: for worker threads only.
struct StateReader: Sendable {
    let place: PartitionFileSlot
    let identity: SnapshotFile.Identity
    /// The folder for spooled responses.
    let folder: String
    /// The lowest seq that an answer may be as of.
    var seqMin = Seq.none
    /// The memory that the rows of one answer may take, in bytes. The rows of a larger answer are read again for each
    /// kind of lines.
    var keptBytes = 1 << 20

    /// The error for damaged rows.
    struct Damage: Error {
        /// The generation of the file (`PartitionFileSlot.current`).
        var file: Int
        var reason: String
    }

    /// Returns the seq as of which answers about a stream are correct now.
    func seq(of stream: StreamName) throws -> Seq {
        try reading(stream) { _, position in position.seq }
    }

    /// The seqs of a stream's partition that a file covers.
    struct Ends {
        /// The first seq from which on the index holds every event.
        var indexed: Seq
        /// The seq after the seeds; 0: there are none.
        var seedsEnd: Seq
        /// The last seq that is folded in the stream; −1: none.
        var head: Seq
    }

    func ends(of stream: StreamName) throws -> Ends {
        try reading(stream) { _, position in
            Ends(indexed: position.oldestEvent, seedsEnd: position.seedsEnd, head: position.seq)
        }
    }

    /// Returns the error of a node that has folded up to `seq`, for a request that needs `needed`.
    static func behind(_ seq: Seq, _ needed: Seq) -> Problem {
        let percent = 100 * (seq + 1) / max(1, needed + 1)
        var problem = Problem(
            .nodeBehind,
            "this node has folded to seq \(seq), expected at least \(needed) (\(percent) % are done); ask again, or"
                + " another node"
        )
        problem.seq = seq
        problem.goal = needed
        problem.retryMs = 1_000
        return problem
    }

    /// Returns true if an event was ever published to the stream.
    func knows(_ stream: StreamName) throws -> Bool {
        try reading(stream) { connection, _ in try StoredStream.row(of: stream, in: connection) != nil }
    }

    /// Returns the events of a stream and the barriers of its partition after a seq, from the index.
    ///
    /// - Parameters:
    ///   - after: The seq before the first event.
    ///   - to: The last seq of the range.
    ///   - limit: The maximum number of events and barriers.
    ///   - bytes: The maximum size of the page in bytes, unless a single event is larger.
    /// - Returns: The page, and the last seq that the node has folded in the stream.
    /// - Throws: `truncated` if the index begins after `after + 1`, `node_behind` if `after` is beyond the folded seqs.
    func page(
        of stream: StreamName,
        after: Seq,
        to: Seq = largestInteger,
        limit: Int,
        bytes: Int = EventRangeResponse.pieceBytes
    ) throws -> (chunk: EventRange, head: Seq) {
        try reading(stream) { connection, position in
            let oldest = position.oldestEvent
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
            var page = Page(
                builder: EventRangeBuilder(from: after + 1, bytes: bytes, events: limit),
                barriers: try barriers(behind: after, to: end, limit: limit, position, in: connection)[...]
            )
            if let row = try StoredStream.row(of: stream, in: connection) {
                var chunks = try StoredChunks(of: row.integer(0), from: after + 1, end: row.integer(5), in: connection)
                var isOver = false
                while !isOver, let (_, data) = try chunks.next() {
                    let isWhole = EventChunk.forEach(in: data) { seq, _, value in
                        guard seq > after else { return true }
                        isOver = seq > end || !page.add(seq, value)
                        return !isOver
                    }
                    guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
                }
            }
            page.addBarriers(before: .max)
            page.builder.prove(to: end)
            return (page.builder.range, position.seq)
        }
    }

    /// Returns the barriers from after the seq `after` to `end`: at most one more than `limit`, which the caller needs
    /// to detect that the page is full.
    private func barriers(
        behind after: Seq,
        to end: Seq,
        limit: Int,
        _ position: StoredPosition,
        in connection: Connection
    ) throws -> [DeliveredEvent] {
        var chunks = try StoredChunks(
            of: SnapshotFile.barriers,
            from: after + 1,
            end: position.lastBarrier,
            in: connection
        )
        var barriers: [DeliveredEvent] = []
        while barriers.count <= limit, let (last, data) = try chunks.next(), last <= end {
            let isWhole = EventChunk.forEach(in: data) { seq, _, value in
                barriers.append(DeliveredEvent(seq: seq, value: Array(value)))
                return true
            }
            guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged barrier in the index") }
        }
        return barriers
    }

    /// A page that is being filled with events of a stream and the barriers of its partition, in seq order.
    private struct Page {
        var builder: EventRangeBuilder
        /// The barriers that are not in the page yet.
        var barriers: ArraySlice<DeliveredEvent>

        /// Adds an event after the barriers that precede it. Returns false if the page is full before that.
        mutating func add(_ seq: Seq, _ value: Bytes) -> Bool {
            addBarriers(before: seq)
            return builder.add(seq: seq, value: value)
        }

        mutating func addBarriers(before seq: Seq) {
            while let barrier = barriers.first, barrier.seq < seq {
                guard barrier.value.withUnsafeBytes({ builder.add(seq: barrier.seq, value: $0) }) else { return }
                barriers.removeFirst()
            }
        }
    }

    /// Runs `body` in one consistent read of the file, with the position of `stream`; nil: of all streams.
    func reading<R>(_ stream: StreamName?, _ body: (Connection, StoredPosition) throws -> R) throws -> R {
        let file = place.current
        do {
            let (connection, position) = try place.beginRead()
            defer { connection.rollback() }
            guard position.format == SnapshotFile.format else {
                throw SnapshotError(.nodeBehind, "this node is upgrading its file; ask again")
            }
            guard !position.isInsideSeeds else {
                throw SnapshotError(.nodeBehind, "this node is still reading the seeds of the epoch; ask again")
            }
            let own = stream.map(position.of) ?? position
            guard own.seq >= seqMin else { throw Self.behind(own.seq, seqMin) }
            return try body(connection, own)
        } catch let error where SnapshotFile.isDamage(error) {
            throw Damage(file: file, reason: "\(error)")
        }
    }
}
