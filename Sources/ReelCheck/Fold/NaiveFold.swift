/// The fold of one partition in its slowest and simplest form. The checker compares the real fold with it.
///
/// It keeps every stream of the partition in full, and searches the whole text for each splice. It copies the objects
/// of an event, to undo a rejected event. It shares no line of code with the real fold.
public struct NaiveFold: Sendable {
    let epoch: Text
    let partition: Int
    let partitions: Int
    /// The last seq of the partition that has been folded.
    public private(set) var seq: Int64 = -1
    /// The epoch that follows, after this one has ended; otherwise nil.
    var next: Text?
    private var row = Row.notBegun
    /// True after an unknown barrier, because neither the barrier nor any record after it is folded.
    private(set) var isStopped = false
    var streams: [Text: StreamState] = [:]
    /// The state from the seeds of the epoch; nil before the end of their sequence.
    private(set) var planted: [Text: StreamState]?

    /// The position of the fold relative to the unbroken sequence of seeds at the beginning of a new epoch's log.
    private enum Row {
        case notBegun, open, over
    }

    /// Creates an empty fold of one partition.
    ///
    /// - Parameters:
    ///   - epoch: the epoch of the log, as 16 lower-case hex digits.
    ///   - partition: the number of the partition, from 0.
    ///   - partitions: the number of partitions of the log.
    public init(epoch: String, partition: Int, of partitions: Int) {
        self.epoch = Text(epoch)
        self.partition = partition
        self.partitions = partitions
    }

    /// Creates a fold that continues from a snapshot of a stream. It accepts no seeds.
    public init(_ snapshot: NaiveSnapshot, of partitions: Int) {
        epoch = snapshot.epoch
        partition = snapshot.partition
        self.partitions = partitions
        seq = snapshot.seq
        next = snapshot.next
        row = .over
        streams = [snapshot.stream: snapshot.state]
    }

    /// Folds the next record.
    ///
    /// - Parameters:
    ///   - n: the seq of the record. Seqs may skip numbers (records of other streams, holes) but never decrease.
    ///   - key: the key of the record.
    ///   - value: the value of the record.
    /// - Returns: the result; nil for a record at or below `seq`, which has been folded already.
    public mutating func apply(seq n: Int64, key: [UInt8], value: [UInt8]) -> Judgement? {
        guard n > seq else { return nil }
        if isStopped { return .stopped }
        return apply(Record(key: key, value: value, in: partition, of: partitions), key: key, seq: n)
    }

    /// Folds the next record, which has been parsed already.
    mutating func apply(_ record: Record, key: [UInt8], seq n: Int64) -> Judgement? {
        guard n > seq else { return nil }
        if isStopped { return .stopped }
        let judgement = judge(record, at: n, stream: Text(key))
        if judgement == .stopped { isStopped = true } else { seq = n }
        return judgement
    }

    private mutating func judge(_ record: Record, at n: Int64, stream: Text) -> Judgement {
        if next != nil { return .void("after the end of the epoch") }
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

    /// Returns the lines of a stream's state, each with a line feed. With `after` ≥ 0, only the changes after that seq.
    /// Returns nil within the sequence of seeds, and for an `after` below the horizon.
    public func snapshot(of stream: String, after: Int64 = -1) -> [UInt8]? {
        guard row != .open, let snapshot = state(of: stream), after == -1 || after >= snapshot.state.horizon else {
            return nil
        }
        return snapshot.lines(after: after)
    }

    /// Returns the digest of a stream's state as 16 hex digits.
    public func digest(of stream: String) -> String {
        (streams[Text(stream)] ?? StreamState()).digest
    }

    /// Returns the state of a stream in the form in which two folds can be compared; nil within the sequence of seeds.
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
