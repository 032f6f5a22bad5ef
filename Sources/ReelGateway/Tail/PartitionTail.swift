import ReelBase
import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// Follows one partition for the whole gateway: parses each batch once and passes it on.
///
/// If the log was trimmed before it was read, the tail continues at the first seq that is there. It stops for good if
/// the log is not what was read before (`diverged`), and before a barrier that this version does not know.
final class PartitionTail: LogSink {
    private struct State {
        var rules: PartitionRules
        var event = ParsedEvent()
        var next: Seq
        var end: EpochEnd?
        /// The latest batches, to check what later records say about them. `TailVerifier` checks by the same rule
        /// (`RecordBatch.checkWitnesses`), but remembers hashes, because it keeps no batches.
        var recent = Deque<TailBatch>()
        var recentBytes = 0
        var tail: (any LogTail)?
        var isFenced = false

        /// Returns a record of the latest batches; nil if none has it.
        func record(at seq: Seq) -> Witness? {
            let index = recent.partitioningIndex { $0.last < seq }
            guard index < recent.count else { return nil }
            let batch = recent[index].records
            return batch.entry(at: seq).map(batch.witness)
        }
    }

    /// An event that a tail reports.
    enum News: Sendable {
        case batch(TailBatch)
        /// The log was trimmed before it was read: the tail continues at this seq.
        case skipped(to: Seq)
        /// The tail has ended. It may be restarted unless it is fenced.
        case ended(LogError, isFenced: Bool)
    }

    /// The limits of `State.recent`.
    private static let (batchesRemembered, bytesRemembered) = (64, 8 << 20)

    let partition: Int
    private let log: any EventLog
    private let state: Mutex<State>
    private let room: @Sendable () -> Bool
    private let tell: @Sendable (PartitionTail, News) -> Void

    /// Creates a tail that reads from `start` on, once it is started. `tell` is called on a thread of the log, while no
    /// lock of the tail is held. `hasRoom` returns true if `tell` would not block that thread.
    init(
        log: any EventLog,
        partition: Int,
        from start: WarmStart,
        hasRoom: @escaping @Sendable () -> Bool,
        tell: @escaping @Sendable (PartitionTail, News) -> Void
    ) {
        room = hasRoom
        self.log = log
        self.partition = partition
        self.tell = tell
        let rules = PartitionRules(partition: partition, of: log.partitions, phase: start.phase)
        state = Mutex(State(rules: rules, next: start.from))
    }

    /// Starts the tail, or continues where it has ended. Blocks; do not call it on an event loop.
    func start() {
        guard let next = state.withLock({ $0.isFenced ? nil : $0.next }) else { return }
        let tail = log.tail(partition, from: next, to: self)
        let isStopped = state.withLock { state in
            if !state.isFenced { state.tail = tail }
            return state.isFenced
        }
        if isStopped { tail.cancel() }
    }

    /// Returns true if the log has a next record for the tail. Throws if that record cannot be read. If there is none,
    /// throws if the last record cannot be read, unless it was trimmed. Blocks; do not call it on an event loop.
    func probe() throws(LogError) -> Bool {
        let bounds = try log.bounds(partition)
        let next = max(bounds.first, state.withLock { $0.next })
        let seq = min(next, bounds.last)
        if seq >= max(0, bounds.first) { _ = try log.read(partition, from: seq, to: seq, bytes: 1) }
        return next <= bounds.last
    }

    /// Ends the tail. Do not call it on an event loop, nor from inside `tell`.
    func stop() {
        let tail = state.withLock { state in
            state.isFenced = true
            return state.tail.take()
        }
        tail?.cancel()
    }

    var hasRoom: Bool { room() }

    func received(_ batch: RecordBatch) {
        let news: [News] = state.withLock { state in
            guard !state.isFenced, !batch.seqs.isEmpty else { return [] }
            guard batch.seqs.lowerBound == state.next else {
                state.isFenced = true
                let message = "found a batch from \(batch.seqs.lowerBound) on, expected \(state.next)"
                return [.ended(LogError(.internal, message), isFenced: true)]
            }
            let (read, stoppedBefore) = classify(batch, &state)
            var news: [News] = []
            if let read {
                do throws(LogError) {
                    _ = try batch.checkWitnesses(
                        in: read.kinds.indices,
                        isBelieved: { read.kinds[$0].isWitness },
                        record: { state.record(at: $0) }
                    )
                } catch {
                    state.isFenced = true
                    return [.ended(error, isFenced: true)]
                }
                remember(read, &state)
                news.append(.batch(read))
            }
            if let seq = stoppedBefore {
                state.isFenced = true
                let message = "found a barrier at seq \(seq) that this version does not know: it needs a newer one"
                news.append(.ended(LogError(.internal, message), isFenced: true))
            }
            return news
        }
        for piece in news { tell(self, piece) }
    }

    func failed(_ error: LogError) {
        let news: [News] = state.withLock { state in
            state.tail = nil
            if [.diverged, .epochChanged, .aheadOfLog].contains(error.code) { state.isFenced = true }
            let end = News.ended(error, isFenced: state.isFenced)
            guard error.code == .truncated, let first = error.seq, first > state.next, !state.isFenced else {
                return [end]
            }
            state.next = first
            state.rules.hole()
            return [.skipped(to: first), end]
        }
        for piece in news { tell(self, piece) }
    }

    /// Classifies each record. Stops before a barrier that this version does not know.
    private func classify(_ batch: RecordBatch, _ state: inout State) -> (TailBatch?, stoppedBefore: Seq?) {
        var streams = StreamTable()
        var kinds: [TailBatch.Kind] = []
        kinds.reserveCapacity(batch.entries.count)
        var voids = VoidTally()
        var end = batch.seqs.upperBound
        var seq = batch.seqs.lowerBound
        for entry in batch.entries {
            Self.hole(seq..<entry.seq, &state.rules, &voids)
            seq = entry.seq + 1
            let kind: TailBatch.Kind? = batch.withRecord(entry) { key, value in
                switch state.rules.read(key: key, value: value, into: &state.event) {
                case .event:
                    // The rules accept only valid names.
                    guard let stream = streams.index(ofKey: key) else { return .void }
                    return .event(stream: stream, site: state.event.site, op: state.event.op)
                case .barrier(let barrier):
                    if case .end(let next) = barrier { state.end = EpochEnd(seq: entry.seq, next: next) }
                    return .barrier
                case .seed: return .seed
                case .void(let void):
                    voids.add(void, seq: entry.seq, key: key)
                    return .void
                case .unknownBarrier: return nil
                }
            }
            guard let kind else {
                end = entry.seq
                break
            }
            kinds.append(kind)
        }
        if end == batch.seqs.upperBound { Self.hole(seq..<end, &state.rules, &voids) }
        state.next = end
        let seqs = batch.seqs.lowerBound..<end
        let stoppedBefore = end < batch.seqs.upperBound ? end : nil
        guard !seqs.isEmpty else { return (nil, stoppedBefore) }
        let read = TailBatch(
            records: batch,
            seqs: seqs,
            kinds: kinds,
            streams: streams.names,
            voids: voids,
            end: state.end
        )
        return (read, stoppedBefore)
    }

    private func remember(_ batch: TailBatch, _ state: inout State) {
        state.recent.append(batch)
        state.recentBytes += batch.byteCount
        while state.recent.count > Self.batchesRemembered
            || state.recentBytes > Self.bytesRemembered && state.recent.count > 1
        {
            state.recentBytes -= state.recent.popFirst()?.byteCount ?? 0
        }
    }

    /// Notes seqs without a record; the range may be empty.
    private static func hole(_ seqs: Range<Seq>, _ rules: inout PartitionRules, _ voids: inout VoidTally) {
        guard !seqs.isEmpty else { return }
        rules.hole()
        voids.add(holes: seqs)
    }
}

extension TailBatch.Kind {
    /// True if header `p` of such a record is believed. A seed has none.
    fileprivate var isWitness: Bool {
        switch self {
        case .event, .barrier: true
        case .seed, .void: false
        }
    }
}
