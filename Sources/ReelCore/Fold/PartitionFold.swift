/// All streams of one partition, folded in memory: for who needs the whole state of a log at once. Pure.
public struct PartitionFold: Sendable {
    /// The partition's number.
    public let partition: Int
    /// The streams that have a state.
    public private(set) var streams: [StreamName: Fold] = [:]
    /// The next seq to read.
    public private(set) var next: Seq
    /// How many events were read.
    public private(set) var events = 0
    /// How many of them were refused as a gap in their site's ops.
    public private(set) var gaps = 0
    private let epoch: Epoch
    private var rules: PartitionRules
    private var event = ParsedEvent()

    /// A partition that is read from its first record on; or one that goes on at `next`, behind the states that are put
    /// in by `add`, in this phase.
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

    /// Where in its life the partition is.
    public var phase: PartitionRules.Phase { rules.phase }

    /// Puts the state of a stream in. What lies at or below its seq is not folded again.
    public mutating func add(_ fold: Fold) {
        streams[fold.stream] = fold
    }

    /// Reads the next record, and says what it is. Seqs must ascend; one that is left out is a hole. Before a barrier
    /// that is not known nothing has changed.
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

    /// Passes seqs at which there is no record, up to this one.
    public mutating func skip(to seq: Seq) {
        guard seq > next else { return }
        rules.hole()
        next = seq
    }

    /// True if the stream lies in this partition.
    private func isHere(_ stream: StreamName) -> Bool { rules.partition(of: stream) == partition }

    private mutating func change(_ key: Bytes, at seq: Seq, _ body: (inout Fold) -> Void) {
        // The rules have let only valid names through.
        guard let name = StreamName(bytes: key) else { return }
        let new = Fold(stream: name, partition: partition, epoch: epoch)
        if streams[name]?.seq ?? .none < seq { body(&streams[name, default: new]) }
    }
}
