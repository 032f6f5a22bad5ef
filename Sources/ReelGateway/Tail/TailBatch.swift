import ReelCore
import ReelLog
import ReelNode

/// The end of the epoch in a partition.
struct EpochEnd: Equatable, Sendable {
    /// The seq of the barrier. Records after it are void.
    var seq: Seq
    /// The epoch that follows.
    var next: Epoch
}

/// A batch of the tail, parsed once for all loops. It never changes.
final class TailBatch: Sendable {
    /// The kind of a record.
    enum Kind: Equatable, Sendable {
        /// A valid event of `streams[stream]`.
        case event(stream: Int, site: Site, op: Op)
        case barrier
        /// A line of the state that the epoch begins with; not delivered.
        case seed
        /// A record without effect; not delivered.
        case void
    }

    /// A record and its kind.
    struct Item {
        var entry: RecordBatch.Entry
        var kind: Kind
    }

    let records: RecordBatch
    /// The seqs that the batch covers.
    let seqs: Range<Seq>
    /// The kind of each record, by seq. Records after `seqs` are left out.
    let kinds: [Kind]
    /// The streams that have events in the batch, each once.
    let streams: [StreamName]
    /// For each of `streams` the indexes of its events.
    let places: [[Int]]
    let hasBarriers: Bool
    /// The seq after the last seed of the batch; nil: it has no seeds.
    let seedsEnd: Seq?
    /// The records without effect.
    let voids: VoidTally
    /// The end of the epoch, if it is in or before the batch; nil: it is not.
    let end: EpochEnd?
    /// The number of bytes of all keys and values.
    let byteCount: Int
    /// The last record with its hash; nil if the batch has no record.
    let witness: Witness?

    init(
        records: RecordBatch,
        seqs: Range<Seq>,
        kinds: [Kind],
        streams: [StreamName],
        voids: VoidTally = VoidTally(),
        end: EpochEnd? = nil
    ) {
        self.records = records
        self.seqs = seqs
        self.kinds = kinds
        self.streams = streams
        self.voids = voids
        self.end = end
        var places = [[Int]](repeating: [], count: streams.count)
        var hasBarriers = false
        var seedsEnd: Seq?
        var byteCount = 0
        for (index, kind) in kinds.enumerated() {
            byteCount += records.entries[index].byteCount
            switch kind {
            case .event(let stream, _, _): places[stream].append(index)
            case .barrier: hasBarriers = true
            case .seed: seedsEnd = records.entries[index].seq + 1
            case .void: break
            }
        }
        self.places = places
        self.hasBarriers = hasBarriers
        self.seedsEnd = seedsEnd
        self.byteCount = byteCount
        witness = kinds.isEmpty ? nil : records.witness(of: records.entries[kinds.count - 1])
    }

    var partition: Int { records.partition }
    /// The approximate memory in bytes of a batch, and of a seq, without the records' bytes.
    private static let (batchCostBytes, seqCostBytes) = (256, 96)
    /// The approximate number of bytes that the batch takes in memory: its records, and the overhead of the batch and
    /// each seq.
    var costBytes: Int { byteCount + Self.batchCostBytes + Self.seqCostBytes * seqs.count }
    /// The last seq that the batch covers.
    var last: Seq { seqs.upperBound - 1 }

    subscript(index: Int) -> Item { Item(entry: records.entries[index], kind: kinds[index]) }

    /// Returns the indexes of the records that the batch delivers in a stream: its events and the barriers, by seq.
    func delivered(in stream: Int) -> [Int] {
        guard hasBarriers else { return places[stream] }
        return kinds.indices.filter { index in
            switch kinds[index] {
            case .event(stream, _, _), .barrier: true
            default: false
            }
        }
    }

    func withValue<R>(_ item: Item, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        records.withRecord(item.entry) { _, value in body(value) }
    }
}
