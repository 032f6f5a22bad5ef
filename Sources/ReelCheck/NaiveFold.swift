/// The fold of one partition, as slow and as plain as can be: the judge of the real one.
///
/// It keeps every stream of the partition in full, looks through all of a text for each splice and keeps what
/// an event was before it. It shares no line with the fold that it judges.
public struct NaiveFold: Sendable {
    let epoch: Text
    let partition: Int
    let partitions: Int
    /// The last seq of the partition that has been folded.
    public private(set) var seq: Int64 = -1
    /// The epoch that follows, once this one has ended.
    var next: Text?
    private var row = Row.notBegun
    /// An unknown barrier was met: what stands there and behind it is not folded.
    private(set) var isStopped = false
    var streams: [Text: StreamState] = [:]
    /// What the seeds of the epoch came to, once their row is over.
    private(set) var planted: [Text: StreamState]?

    /// Where the fold stands with the unbroken row of seeds that a new epoch's log begins with.
    private enum Row {
        case notBegun, open, over
    }

    /// An empty fold of the partition with this number, one of `partitions`, of a log.
    public init(epoch: String, partition: Int, of partitions: Int) {
        self.epoch = Text(epoch)
        self.partition = partition
        self.partitions = partitions
    }

    /// A fold that goes on from a snapshot of a stream. It takes no seeds.
    public init(_ snapshot: NaiveSnapshot, of partitions: Int) {
        epoch = snapshot.epoch
        partition = snapshot.partition
        self.partitions = partitions
        seq = snapshot.seq
        next = snapshot.next
        row = .over
        streams = [snapshot.stream: snapshot.state]
    }

    /// Folds the next record. Seqs may jump (over records of other streams, over holes) but never go back: a record at
    /// or below `seq` has been folded, and nil is the answer.
    public mutating func apply(seq n: Int64, key: [UInt8], value: [UInt8]) -> Judgement? {
        guard n > seq else { return nil }
        if isStopped { return .stopped }
        return apply(Record(key: key, value: value, in: partition, of: partitions), key: key, seq: n)
    }

    /// The same for a record that has been read.
    mutating func apply(_ record: Record, key: [UInt8], seq n: Int64) -> Judgement? {
        guard n > seq else { return nil }
        if isStopped { return .stopped }
        let judgement = judge(record, at: n, stream: Text(key))
        if judgement == .stopped { isStopped = true } else { seq = n }
        return judgement
    }

    private mutating func judge(_ record: Record, at n: Int64, stream: Text) -> Judgement {
        if next != nil { return .void("behind the end of the epoch") }
        let inRow = row == .notBegun ? n == 0 : row == .open && n == seq + 1
        if case .seed(let seed) = record, inRow {
            row = .open
            streams[stream, default: StreamState()].plant(seed, at: n)
            return .seed
        }
        if case .unknownBarrier = record { return .stopped }
        if row != .over { planted = streams }
        row = .over
        switch record {
        case .event(let event):
            return streams[stream, default: StreamState()].fold(event, at: n)
        case .barrier(let barrier):
            switch barrier {
            case .fold, .open: break
            case .end(let epoch): next = epoch
            case .retire(let before, let stream):
                if ReelCheck.partition(of: stream.bytes, among: partitions) == partition {
                    streams[stream, default: StreamState()].retire(before: before, at: n)
                }
            }
            return .barrier
        case .void(let reason):
            return .void(reason)
        case .seed:
            return .void("a seed outside the row of seeds")
        case .unknownBarrier:
            return .stopped
        }
    }

    /// The lines, each ended by LF, of a stream's state, or with `after` ≥ 0 of what was touched after that seq. Nil
    /// where there is none: inside the row of seeds, and after a seq below the horizon.
    public func snapshot(of stream: String, after: Int64 = -1) -> [UInt8]? {
        guard row != .open, let snapshot = state(of: stream), after == -1 || after >= snapshot.state.horizon else {
            return nil
        }
        return snapshot.lines(after: after)
    }

    /// The digest of a stream's state, 16 hex digits.
    public func digest(of stream: String) -> String {
        (streams[Text(stream)] ?? StreamState()).digest
    }

    /// The state of a stream in the form in which two folds may be compared; nil inside the row of seeds.
    public func normalForm(of stream: String) -> [UInt8]? {
        row == .open ? nil : state(of: stream)?.normalForm
    }

    private func state(of stream: String) -> NaiveSnapshot? {
        let name = Text(stream)
        return NaiveSnapshot(
            stream: name,
            epoch: epoch,
            partition: partition,
            seq: seq,
            next: next,
            state: streams[name] ?? StreamState()
        )
    }
}
