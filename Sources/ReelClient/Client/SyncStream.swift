public import ReelCore

/// Where the reading of a stream begins on a device that does not hold it yet.
public enum SyncStart: Sendable {
    /// With a snapshot, or a delta where an older state is there, from any node; then live. What came before is known
    /// by its result.
    case snapshot
    /// With what comes from now on, shown at once; what is missing before is fetched meanwhile, also on a device that
    /// holds an older state. What the device itself has to say is sent once that is there.
    case now
    /// With the stream's first event.
    case all
}

/// A stream that a device holds, open or not.
public struct HeldStream: Sendable, Equatable {
    /// Its name, as `open` takes it.
    public let id: String
    /// How many own events wait in it; see `SyncStream.queued`.
    public let queued: Int
}

/// One open stream of a `SyncClient`: a total order of events that this device reads and writes.
///
///     let todo = try await client.open("todo")
///     let publication = try await todo.publish(.insert("task", "cb55", ["title": "Milk"]))
///     try await publication.fate()
///     await todo.object("task", "cb55")?["title"]
///
/// Reading never waits for a network. It shows the device's fold, which is as new as `seq` says, with the device's own
/// events laid over it that are not yet part of it: what is published is seen at once. `confirmed` shows the fold
/// alone; everybody who has folded the same seq of the same epoch has the same there, and the same `digest`.
public struct SyncStream: Sendable {
    /// The client that holds it.
    public let client: SyncClient
    let name: StreamName

    /// The stream's name.
    public var id: String { name.description }

    /// Puts an event into the device's queue, from where it goes to the stream as soon as a node can be reached.
    /// Returns when it is durable on this device: it survives the process and the network from then on, is sent in the
    /// order of publishing, and happens once.
    ///
    /// `base` is what its author had seen: the `readAt` of the object that the event was made of. Splices and guards
    /// mean what they say only with it, since others' events may be folded between reading and publishing; nil: all
    /// that is folded now. A splice counts the author's own earlier splices as well, as `object` shows them.
    ///
    /// Throws a `ReelError`, `bad_event`, `bad_json`, `bad_number` or `too_large` for an event that no gateway would
    /// take, `bad_base` for one that is made of what is not folded yet, `epoch_changed` for a splice or guard that is
    /// made of an epoch that has ended; `deleted`, `no_object`, `guard`, `type`, `range`, `stale` or `too_large` for
    /// one that the objects, as this device shows them, would reject; `closed` once the client is closed; a code that
    /// begins with `store_` if the store failed (then the event is not taken, unless the store was lost in this very
    /// moment).
    @discardableResult
    public func publish(_ event: Event, base: ReadPosition? = nil) async throws -> Publication {
        try await client.publish(event, to: name, base: base)
    }

    /// The object with all own events, nil if it is not there or was deleted.
    public func object(_ model: String, _ id: String) async -> SyncObject? {
        await client.object(model, id, of: name)
    }

    /// All objects of a model with all own events, by id, in byte order.
    public func objects(_ model: String) async -> [SyncObject] {
        await client.objects(model, of: name)
    }

    /// The stream without the own events that still wait.
    public var confirmed: ConfirmedObjects { ConfirmedObjects(client: client, name: name) }

    /// The last seq of the partition up to which everything is covered and folded; −1: nothing yet.
    public var seq: Seq { get async { await client.seq(of: name) } }

    /// The seqs of the partition that this device can prove to know.
    public var coverage: SeqRanges { get async { await client.coverage(of: name) } }

    /// The seqs up to the last known one that are still missing.
    public var gaps: SeqRanges { get async { await client.gaps(of: name) } }

    /// The log's identity, once it is known. Seqs mean something only together with it.
    public var epoch: Epoch? { get async { await client.epoch(of: name) } }

    /// 64 bits that are equal on all devices and nodes which hold the same state, printed as 16 hex digits.
    public var digest: UInt64? { get async { await client.digest(of: name) } }

    /// The own events that wait, in order, also those of an earlier run: what becomes of them can be awaited.
    public var pending: [Publication] { get async { await client.pending(of: name) } }

    /// How many own events are left to be sent, to be acked, or to be met by the own fold; merged ones count as one.
    public var queued: Int { get async { await client.queued(of: name) } }

    /// The problems of this stream that hold at the moment. Those of the whole client stand in `SyncClient.state`.
    public var problems: [SyncProblem] { get async { await client.problems(of: name) } }

    /// What changes from now on, batch by batch. The sequence does not hold the client, as a `SyncStream` does: a task
    /// that is to end with the client takes the sequence only.
    public var changes: Changes { get async { await client.changes(of: name) } }

    /// Waits until the stream is folded up to this seq. Throws `closed` if the client is closed before, `epoch_changed`
    /// if the log ends whose seq it is, and `CancellationError` if the task is cancelled.
    public func waitUntil(seq: Seq) async throws {
        try await client.waitUntil(seq: seq, of: name)
    }
}
