public import ReelCore

/// The position where the reading of a stream begins on a device that does not hold it yet.
public enum StartPosition: Sendable {
    /// A snapshot, or a delta if there is an older state, from any node; then live events. Earlier events are known
    /// only by their result.
    case snapshot
    /// The next event of the stream. New events are shown at once. Earlier missing events are fetched meanwhile, also
    /// on a device that holds an older state. The device's own events are sent once those have arrived.
    case latest
    /// The stream's first event.
    case beginning
}

/// A stream that a device holds, open or not.
public struct LocalStream: Sendable, Hashable, Codable {
    /// The name of the stream, for `open`.
    public let id: String
    /// The number of own events that wait in the stream; see `StreamStatus.pendingCount`.
    public let pendingCount: Int
}

/// An open stream of a `SyncClient`. It is a total order of events that this device reads and writes.
///
///     let todo = try await client.open("todo")
///     let publication = try await todo.publish(.insert("task", id: "cb55", ["title": "Milk"]))
///     try await publication.outcome()
///     try todo.object("task", id: "cb55")?["title"]
///
/// Reading never waits for a network. It shows the device's fold up to `seq`, with the device's own events laid over it
/// that are not yet part of it. So a published event is visible at once. `confirmed` shows the fold alone. Every device
/// that has folded the same seq of the same epoch has the same confirmed objects, and the same `digest`.
public struct SyncStream: Sendable {
    /// The client that holds the stream.
    public let client: SyncClient
    let opening: StreamOpening
    var name: StreamName { opening.name }

    /// The stream's name.
    public var id: String { name.description }

    /// Puts an event into the device's queue, which sends it as soon as a node can be reached. Returns when the event
    /// is durable on this device: from then on it survives the end of the process. Events are sent in the order of
    /// publishing, and each one happens once.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - base: the position that the author had read: the `readAt` of the object that the event was made from. Nil:
    ///     what is folded now. Splices and guards need it, because other events may be folded between reading and
    ///     publishing. A splice also counts the author's own earlier splices, as `object` shows them.
    /// - Returns: A handle by which the seq and the outcome of the event can be awaited.
    /// - Throws: A `ReelError` with one of these codes:
    ///   - `bad_event`, `bad_json`, `bad_number` or `too_large` for an event that no gateway would accept.
    ///   - `bad_base` for an event made from a position that is not folded yet.
    ///   - `epoch_changed` for a splice or guard that was made in an epoch that has ended.
    ///   - `deleted`, `no_object`, `guard`, `type`, `range`, `stale` or `too_large` for an event that the objects, as
    ///     this device shows them, would reject.
    ///   - `closed` once the stream or the client is closed.
    ///   - a code that begins with `store_` if the store failed. Then the event is not accepted, unless the store was
    ///     lost at this very moment.
    @discardableResult
    public func publish(_ event: SyncEvent, base: ReadPosition? = nil) async throws -> PublishHandle {
        try await client.publish(event, to: opening, base: base)
    }

    /// The status of the stream: its content, its connection, its position and its queue. It can be read on any thread
    /// at any time. After the stream was closed, evicted or forgotten, it is the status of a stream that was never
    /// opened: `neverSynced`, `closed`, and no position. After `SyncClient.close` it is the last status, with `closed`.
    public var status: StreamStatus { client.resources.board.stream(opening) }

    /// Returns the present status, and then the newest status after each change.
    public func statuses() -> Statuses<StreamStatus> {
        Statuses { [board = client.resources.board, opening] in board.statuses(of: opening) }
    }

    /// Returns the seqs of the partition that this device has proven to know.
    public func coverage() async -> SeqRanges { await client.coverage(of: opening) }

    /// Returns the seqs up to the last known one that are still missing.
    public func gaps() async -> SeqRanges { await client.gaps(of: opening) }

    /// Returns a 64-bit hash that is equal on all devices and nodes with the same state, printed as 16 hex digits. Nil
    /// without a state.
    public func digest() async -> UInt64? { await client.digest(of: opening) }

    /// Returns the own events that wait, in order, including those of an earlier run. Their outcomes can be awaited.
    public func pending() async -> [PublishHandle] { await client.pending(of: opening) }

    /// Returns the changes from now on, batch by batch. A `SyncStream` holds the client, and this sequence does not: a
    /// task that is to end with the client must keep only the sequence.
    public func changes() async -> ObjectChanges { await client.changes(of: opening) }

    /// Returns the objects that look different now than at a token, also across restarts of the app. Each part of an
    /// app can keep its own token. It stores the token of the answer together with what it has made from the changes,
    /// and passes it to the next call. `changes()` tells when another call is worth while; a missed batch only delays.
    ///
    /// The device records changes from the first call on, at most 65,536 of them or 8 MiB. It stops when it no longer
    /// has the changes since any token that it has given, or by `stopRecordingChanges`. The next call begins again.
    ///
    /// The device does not know the changes since an older token, nor those over a load of the first state, an eviction
    /// or a damaged store. Then the answer is a reset: read all objects of its snapshot.
    ///
    /// - Parameter token: the token of the last answer; nil: there is none yet, and the answer is a reset.
    /// - Returns: The changes up to now.
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func changes(since token: ChangeToken?) async throws -> StreamChanges {
        try await client.historyMoment(of: opening).changes(since: token)
    }

    /// Removes the recorded changes from the device, and records no more. Call it when no part of the app keeps a token
    /// any longer. The next call of `changes(since:)` is answered with a reset, and begins the recording again.
    ///
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func stopRecordingChanges() async throws { try await client.stopRecordingChanges(of: opening) }

    /// Waits until the stream is folded up to this seq.
    ///
    /// - Throws: `closed` if the stream or the client is closed first. `epoch_changed` if the log of the seq ends.
    ///   `CancellationError` if the task is cancelled.
    public func waitUntil(seq: Seq) async throws {
        try await client.waitUntil(seq: seq, of: opening)
    }

    /// Ends the reading of this stream on this device: its subscription, its requests, and the memory that it takes.
    /// The state and the queue stay in the store. `SyncClient.open` opens the stream again from there.
    ///
    /// Events that wait are not sent until the stream is opened again; `SyncClient.streams` lists such streams. Calls
    /// that wait throw `closed`, also `PublishHandle.outcome`, and iterations over `changes` end.
    ///
    /// All values of this stream are closed, and stay closed when the stream is opened again. Their later calls throw
    /// `closed`. Properties that cannot throw are then as for a stream of which nothing was read. A second call has no
    /// effect.
    public func close() async { await client.close(opening) }
}

// The present values in the client's actor. Apps read them from `status`.
extension SyncStream {
    var seq: Seq { get async { await client.seq(of: opening) } }
    var epoch: Epoch? { get async { await client.epoch(of: opening) } }
    var pendingCount: Int { get async { await client.queued(of: opening) } }
    var problems: [SyncProblem] { get async { await client.problems(of: opening) } }
}
