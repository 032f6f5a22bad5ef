import ReelCore

/// The fold of one stream. Its input is the records of the stream's partition: all of them, or only those of the stream
/// and the barriers.
struct StreamFolding {
    private(set) var fold: Fold
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var last = Seq.none
    private var isStopped = false

    /// The site of the last folded event.
    var author: Site { event.site }

    /// The fold of an empty stream. `partition`: the number of its partition, of `partitions` in all.
    init(_ stream: StreamName, partition: Int, of partitions: Int, epoch: Epoch) {
        fold = Fold(stream: stream, partition: partition, epoch: epoch)
        rules = PartitionRules(partition: partition, of: partitions)
    }

    /// Folds the next record and returns its outcome; nil if the record belongs to another stream. The caller passes
    /// records with ascending seqs.
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

    /// Returns the lines of the snapshot; nil if the last record is inside the seeds at the beginning of an epoch,
    /// where no snapshot exists.
    mutating func snapshot() throws(ReelError) -> [UInt8]? {
        if rules.phase == .seeds, last > .none { return nil }
        var lines: [UInt8] = []
        var writer = try fold.snapshot()
        writer.writeAll(to: &lines)
        return lines
    }
}
