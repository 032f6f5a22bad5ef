import ReelCore
import ReelNode

/// The position of a reader in a stream. It decides what to read and what to send, and has no clock, queue or socket.
struct StreamCursor {
    /// The step that a reader has to do next.
    enum Step {
        /// Find a piece that begins at the query's first seq.
        case need(LogQuery)
        /// Nothing: the reader has everything up to the last seq that it wants.
        case caughtUp
    }

    /// The use of a piece that was found.
    enum Use: Equatable {
        /// Send it. It proves everything since the piece before.
        case send(EventRange)
        /// Send nothing: it has no events, and a later piece proves its seqs.
        case keep
        /// The piece does not continue the cursor's range, so nothing may be sent.
        case refuse(ReelError)
    }

    let stream: StreamName
    let partition: Int
    let options: ReadOptions?
    /// The last seq that was proven to the client.
    private(set) var proven: Seq
    /// The next seq to look at. It is greater than `proven + 1` after pieces without events.
    private(set) var next: Seq

    /// Creates a cursor that begins after a seq; −1: at the beginning.
    init(_ stream: StreamName, in partition: Int, after: Seq, options: ReadOptions? = nil) {
        (self.stream, self.partition, self.options) = (stream, partition, options)
        (proven, next) = (after, after + 1)
    }

    var filter: EventFilter? { options?.filter }
    var hasOutcomes: Bool { options?.hasOutcomes == true }

    /// Returns the next step of a reader that wants everything up to `last`.
    ///
    /// - Parameters:
    ///   - last: The last seq that the reader wants.
    ///   - bytes: The maximum size of a piece in bytes, unless a single event is larger.
    ///   - events: The maximum number of events in a piece.
    func step(to last: Seq, bytes: Int, events: Int = .max) -> Step {
        guard next <= last else { return .caughtUp }
        return .need(
            LogQuery(
                stream: stream,
                filter: filter,
                partition: partition,
                from: next,
                to: last,
                bytes: bytes,
                events: events
            )
        )
    }

    /// Advances by a piece that was found, and returns its use.
    ///
    /// - Parameters:
    ///   - piece: The piece. It must begin at `next` and cover at least one seq.
    ///   - provenEvery: The number of unproven seqs from which a piece without events is sent.
    mutating func take(_ piece: EventRange, provenEvery: Seq = Self.provenEvery) -> Use {
        guard piece.from == next, piece.to >= next else {
            return .refuse(ReelError(.internal, "found the range \(piece.from)…\(piece.to), expected one from \(next)"))
        }
        next = piece.to + 1
        guard piece.count > 0 || piece.to - proven >= provenEvery else { return .keep }
        var sent = piece
        sent.from = proven + 1
        proven = piece.to
        return .send(sent)
    }

    /// Records that the client was told everything up to `seq` in another way: by the tail, or by a proof of the head.
    mutating func prove(to seq: Seq) {
        proven = max(proven, seq)
        next = max(next, seq + 1)
    }

    /// The number of seqs after which a client is sent a piece without events. Its next connection then starts after
    /// these seqs.
    static let provenEvery: Seq = 65_536
}
