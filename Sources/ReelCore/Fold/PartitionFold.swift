/// All streams of one partition, folded in memory, for callers that need the whole state of a log at once. Pure.
public struct PartitionFold: Sendable {
    /// The partition's number.
    public let partition: Int
    /// The streams that have a state.
    public private(set) var streams: [StreamName: Fold] = [:]
    /// The next seq to read.
    public private(set) var next: Seq
    /// The number of events that were read.
    public private(set) var events = 0
    /// The number of events that were refused as a gap in the ops of their site.
    public private(set) var gaps = 0
    private let epoch: Epoch
    private var rules: PartitionRules
    private var event = ParsedEvent()

    /// Creates a partition that is read from its first record, or one that continues at `next`.
    ///
    /// - Parameters:
    ///   - partition: the number of the partition.
    ///   - partitions: the number of partitions of the log.
    ///   - epoch: the epoch of the log.
    ///   - next: the next seq to read. If it is not 0, add the states of the streams by `add`.
    ///   - phase: the phase of the partition at `next`.
    public init(
        partition: Int,
        of partitions: Int,
        epoch: Epoch,
        next: Seq = 0,
        phase: PartitionRules.Phase = .seeds
    ) {
        self.partition = partition
        self.epoch = epoch
        self.next = next
        rules = PartitionRules(partition: partition, of: partitions, phase: phase)
    }

    /// The current phase of the partition.
    public var phase: PartitionRules.Phase { rules.phase }

    /// Adds the state of a stream. Records at or below its seq are not folded again.
    public mutating func add(_ fold: Fold) {
        streams[fold.stream] = fold
    }

    /// Reads the next record, and returns its kind. If the record is an unknown barrier, the state is unchanged.
    ///
    /// - Parameters:
    ///   - key: the key of the record.
    ///   - value: the value of the record.
    ///   - seq: the seq of the record. Seqs must ascend; a missing seq is a hole.
    public mutating func read(key: Bytes, value: Bytes, seq: Seq) -> PartitionRules.Record {
        if seq > next { rules.hole() }
        let record = rules.read(key: key, value: value, into: &event)
        switch record {
        case .unknownBarrier: return record
        case .event:
            events += 1
            var outcome: Outcome?
            change(key, at: seq) { [event] fold in outcome = fold.apply(event, value, seq: seq) }
            if outcome == .gap { gaps += 1 }
        case .seed(let seed):
            change(key, at: seq) { fold in _ = fold.apply(seed, value, seq: seq) }
        case .barrier(let barrier):
            guard case .retire(_, let stream) = barrier, isHere(stream) else { break }
            var key = stream.description
            key.withUTF8 { key in change(Bytes(key), at: seq) { $0.apply(barrier, seq: seq) } }
        case .void: break
        }
        next = seq + 1
        return record
    }

    /// Skips the seqs before `seq`, at which there are no records.
    public mutating func skip(to seq: Seq) {
        guard seq > next else { return }
        rules.hole()
        next = seq
    }

    /// True if this partition contains the stream.
    private func isHere(_ stream: StreamName) -> Bool { rules.partition(of: stream) == partition }

    private mutating func change(_ key: Bytes, at seq: Seq, _ body: (inout Fold) -> Void) {
        // The rules have accepted only valid names.
        guard let name = StreamName(bytes: key) else { return }
        let new = Fold(stream: name, partition: partition, epoch: epoch)
        if streams[name]?.seq ?? .none < seq { body(&streams[name, default: new]) }
    }
}
