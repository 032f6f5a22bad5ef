@testable import ReelCore

/// The real folds of a partition's streams, used in the same way as a node uses them.
struct RealPartition {
    private let epoch: Epoch
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var seq = Seq.none
    private var next: Epoch?
    private var stopped = false
    private var folds: [StreamName: Fold] = [:]

    init(epoch: Epoch, partition: Int = 0, of partitions: Int = 1) {
        self.epoch = epoch
        rules = PartitionRules(partition: partition, of: partitions)
    }

    mutating func apply(_ record: LogRecord) -> Outcome {
        if stopped { return .stopped }
        if record.seq > seq + 1 { rules.hole() }
        return record.key.withUnsafeBytes { key in
            record.value.withUnsafeBytes { value in apply(key, value, at: record.seq) }
        }
    }

    private mutating func apply(_ key: Bytes, _ value: Bytes, at n: Seq) -> Outcome {
        let read = rules.read(key: key, value: value, into: &event)
        if case .unknownBarrier = read {
            stopped = true
            return .stopped
        }
        seq = n
        switch read {
        case .event: return change(key) { [event] in $0.apply(event, value, seq: n) }
        case .seed(let seed): return change(key) { $0.apply(seed, value, seq: n) }
        case .barrier(.end(let epoch)):
            next = epoch
            return .barrier
        case .barrier(let barrier):
            if case .retire(_, let stream) = barrier, rules.partition(of: stream) == rules.partition {
                _ = withFold(of: stream.description) { $0.apply(barrier, seq: n) }
            }
            return .barrier
        case .void, .unknownBarrier: return .void
        }
    }

    private mutating func change(_ key: Bytes, _ body: (inout Fold) -> Outcome) -> Outcome {
        guard let stream = StreamName(bytes: key) else { return .void }
        return body(&folds[stream, default: Fold(stream: stream, partition: rules.partition, epoch: epoch)])
    }

    /// Raises the count of consumed events, so that the next mark is `events` events away.
    mutating func age(_ stream: String, toMarkWithin events: Int) {
        _ = withFold(of: stream) { $0.consumed = ($0.consumed / 4_096 + 1) * 4_096 - Int64(events) }
    }

    /// Replaces the fold of a stream with one that is loaded from a snapshot.
    mutating func load(_ lines: [UInt8], of stream: String) throws {
        guard let stream = StreamName(stream) else { return }
        folds[stream] = try lines.withUnsafeBytes { try Fold(snapshot: $0) }
    }

    /// Calls `body` with the fold of a stream, after the fold has advanced to the seq of the partition.
    mutating func withFold<R>(of stream: String, _ body: (inout Fold) throws -> R) rethrows -> R? {
        guard let stream = StreamName(stream) else { return nil }
        var fold = folds[stream] ?? Fold(stream: stream, partition: rules.partition, epoch: epoch)
        fold.advance(to: seq)
        if let next { fold.apply(.end(next), seq: seq) }
        defer { folds[stream] = fold }
        return try body(&fold)
    }
}

extension RealPartition {
    /// Returns the lines of a snapshot, or of a delta if `after` is at least 0.
    mutating func lines(of stream: String, after: Int64) throws -> [UInt8] {
        try withFold(of: stream) { fold in
            var lines: [UInt8] = []
            var writer = try fold.snapshot(after: after)
            writer.writeAll(to: &lines)
            return lines
        } ?? []
    }

    mutating func digest(of stream: String) -> String {
        withFold(of: stream) { Hex64.text($0.digest()) } ?? ""
    }
}
