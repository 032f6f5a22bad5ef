public import ReelCore

/// The name of an object: its model and its id.
public struct ObjectName: Hashable, Codable, Sendable {
    /// The model, such as `task`.
    public var model: String
    /// The id of the object, unique within its model.
    public var id: String

    /// Creates the name of the object `id` of `model`.
    public init(_ model: String, id: String) {
        self.model = model
        self.id = id
    }

    /// Returns true if both names have the same UTF-8 bytes. Two Unicode spellings of one text are two names.
    public static func == (a: ObjectName, b: ObjectName) -> Bool {
        a.model.utf8.elementsEqual(b.model.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
    }

    /// Hashes the UTF-8 bytes of both parts.
    public func hash(into hasher: inout Hasher) {
        for text in [model, id] {
            for byte in text.utf8 { hasher.combine(byte) }
            hasher.combine(0 as UInt8)
        }
    }
}

extension ObjectName: CustomStringConvertible {
    /// The text `MODEL/ID`.
    public var description: String { "\(model)/\(id)" }
}

/// The changes of a stream since the previous batch. Batches that a reader has not taken yet are merged into one. A
/// slow reader therefore delays no other reader, and misses only intermediate states.
public struct ObjectChangeBatch: Sendable {
    /// The seq up to which the stream is folded.
    public internal(set) var seq: Seq
    /// The objects that look different. Each was made, changed or deleted by any device, or an own change of it is now
    /// confirmed.
    public internal(set) var objects: Set<ObjectName> = []
    /// True if a snapshot or a large delta has replaced the state. Then read every object again, not only `objects`.
    public internal(set) var isReset = false
    /// Events that have arrived above a gap. They are folded once the gap is filled. At most the last 1,000 are listed.
    public internal(set) var seen: [DeliveredEvent] = []

    static let seenMax = 1_000

    /// Merges a batch with the pending ones of a reader.
    @Sendable static func gather(_ pending: inout [ObjectChangeBatch], _ batch: ObjectChangeBatch) {
        guard var merged = pending.popLast() else { return pending = [batch] }
        merged.seq = batch.seq
        merged.objects.formUnion(batch.objects)
        merged.isReset = merged.isReset || batch.isReset
        merged.seen = Array((merged.seen + batch.seen).suffix(seenMax))
        pending.append(merged)
    }
}

/// The changes of a stream, batch by batch. The sequence ends when the stream or the client is closed, or when the
/// last reference to the client is released. This sequence and its iterators do not hold the client.
///
/// Several loops may read the sequence at the same time, and each one gets every batch. The first loop begins where
/// `changes()` was called. A further loop begins where its iterator is made. A loop that starts after another one has
/// ended continues where that one stopped.
public struct ObjectChanges: AsyncSequence, Sendable {
    /// An iterator over the batches.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: FeedSource<ObjectChangeBatch>.Lease

        /// Returns the next batch, and waits until something has changed. Returns nil once the stream or the client has
        /// ended, or the task is cancelled.
        public mutating func next() async -> ObjectChangeBatch? {
            await lease.feed.next()
        }
    }

    let source: FeedSource<ObjectChangeBatch>

    /// Returns an iterator over the changes. See `ObjectChanges` for where it begins.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: source.lease())
    }
}
