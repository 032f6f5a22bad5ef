public import ReelCore

/// The name of an object.
public struct ObjectName: Hashable, Sendable {
    /// The kind of object.
    public var model: String
    /// The object among those of its model.
    public var id: String

    /// The object `id` of `model`.
    public init(_ model: String, _ id: String) {
        self.model = model
        self.id = id
    }

    /// Whether both are the same bytes: two spellings of one text are two names.
    public static func == (a: ObjectName, b: ObjectName) -> Bool {
        a.model.utf8.elementsEqual(b.model.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
    }

    /// By the bytes.
    public func hash(into hasher: inout Hasher) {
        for text in [model, id] {
            for byte in text.utf8 { hasher.combine(byte) }
            hasher.combine(0 as UInt8)
        }
    }
}

extension ObjectName: CustomStringConvertible {
    /// `MODEL/ID`.
    public var description: String { "\(model)/\(id)" }
}

/// What has changed in a stream since the last batch. Batches that were not taken yet are merged into one, so that a
/// slow reader holds back nobody and misses nothing but intermediate states.
public struct ChangeBatch: Sendable {
    /// The seq up to which the stream is folded.
    public var seq: Seq
    /// The objects that look different: made, changed or deleted, by others or by this device, or now confirmed.
    public var objects: Set<ObjectName> = []
    /// The whole state was replaced, by a snapshot or a delta: read everything anew, not only `objects`.
    public var isReset = false
    /// Events that have arrived above a gap: known, but not folded until the gap is filled. At most the last 1,000.
    public var seen: [DeliveredEvent] = []

    static let seenMax = 1_000

    /// Merges a batch with those that wait for their reader.
    @Sendable static func gather(_ pending: inout [ChangeBatch], _ batch: ChangeBatch) {
        guard var merged = pending.popLast() else { return pending = [batch] }
        merged.seq = batch.seq
        merged.objects.formUnion(batch.objects)
        merged.isReset = merged.isReset || batch.isReset
        merged.seen = Array((merged.seen + batch.seen).suffix(seenMax))
        pending.append(merged)
    }
}

/// The changes of a stream, batch by batch, until the client is closed or nobody holds it any more: this sequence and
/// its iterators do not hold it.
///
/// Several loops may read it at the same time, and each gets every batch. The first loop begins where `changes` was
/// read, a further one where its iterator is made. A loop after one that has ended continues where that one stopped.
public struct Changes: AsyncSequence, Sendable {
    /// Batches, one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: FeedSource<ChangeBatch>.Lease

        /// The next batch; waits until something has changed. Nil once the client has ended, or where the task is
        /// cancelled.
        public mutating func next() async -> ChangeBatch? {
            await lease.feed.next()
        }
    }

    let source: FeedSource<ChangeBatch>

    /// A reader of the changes; see above where it begins.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: source.lease())
    }
}
