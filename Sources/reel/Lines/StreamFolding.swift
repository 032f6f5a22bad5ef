import ReelCore

/// The fold of one stream, fed with records of its partition: all of them, or only its own and the barriers.
struct StreamFolding {
    private(set) var fold: Fold
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var last = Seq.none
    private var isStopped = false

    /// The site of the event that was folded last.
    var author: Site { event.site }

    /// A stream that nobody wrote yet, in the partition with this number, one of `partitions`.
    init(_ stream: StreamName, partition: Int, of partitions: Int, epoch: Epoch) {
        fold = Fold(stream: stream, partition: partition, epoch: epoch)
        rules = PartitionRules(partition: partition, of: partitions)
    }

    /// What the next record is to the stream; nil for one of another stream. Seqs must ascend.
    mutating func fold(key: Bytes, value: Bytes, seq: Seq) -> Outcome? {
        if isStopped { return .stopped }
        if seq > last + 1 { rules.hole() }
        last = seq
        let isOwn = key.elementsEqual(fold.stream.description.utf8)
        if !isOwn, StreamName.isValid(key) {
            _ = rules.read(key: key, value: value, into: &event)
            fold.advance(to: seq)
            return nil
        }
        switch rules.read(key: key, value: value, into: &event) {
        case .event:
            return fold.apply(event, value, seq: seq)
        case .seed(let seed):
            return fold.apply(seed, value, seq: seq)
        case .barrier(let barrier):
            fold.apply(barrier, seq: seq)
            return .barrier
        case .void:
            fold.advance(to: seq)
            return .void
        case .unknownBarrier:
            isStopped = true
            return .stopped
        }
    }

    /// The lines of the snapshot; nil inside the row of seeds that an epoch begins with, where there is none.
    mutating func snapshot() throws(ReelError) -> [UInt8]? {
        if rules.phase == .seeds, last > .none { return nil }
        var lines: [UInt8] = []
        var writer = try fold.snapshot()
        writer.writeAll(to: &lines)
        return lines
    }
}
