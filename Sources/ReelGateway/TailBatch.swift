import ReelCore
import ReelLog
import ReelNode

/// Where the epoch has ended in a partition.
struct EpochEnd: Equatable, Sendable {
    /// The barrier's place; what lies behind it is void.
    var seq: Seq
    /// The epoch that follows.
    var next: Epoch
}

/// A batch of the tail, taken apart once for all loops.
final class TailBatch: Sendable {
    /// What a record is.
    enum Kind: Equatable, Sendable {
        /// A valid event of `streams[stream]`.
        case event(stream: Int, site: Site, op: Op)
        case barrier
        /// A line of the state that the epoch begins with; not delivered.
        case seed
        /// No effect, not delivered.
        case void
    }

    /// A record and what it is.
    struct Item {
        var entry: RecordBatch.Entry
        var kind: Kind
    }

    let records: RecordBatch
    /// The seqs that the batch accounts for.
    let seqs: Range<Seq>
    /// What each record is, by seq: those behind `seqs` are left out.
    let kinds: [Kind]
    /// The streams that have events here, each once.
    let streams: [StreamName]
    /// For each of `streams` the indexes of its events.
    let places: [[Int]]
    let hasBarriers: Bool
    /// The seq behind the last seed of the batch; nil if it has none.
    let seedsEnd: Seq?
    /// What has no effect.
    let voids: VoidTally
    /// Where the epoch has ended, if that is in or before the batch.
    let end: EpochEnd?
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
    /// Bytes that it takes in memory, about: its records' and what each needs besides.
    var costBytes: Int { byteCount + 256 + 96 * seqs.count }
    /// The last seq that the batch accounts for.
    var last: Seq { seqs.upperBound - 1 }

    subscript(index: Int) -> Item { Item(entry: records.entries[index], kind: kinds[index]) }

    /// What is delivered of the batch in a stream: its events and the barriers, by seq.
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
