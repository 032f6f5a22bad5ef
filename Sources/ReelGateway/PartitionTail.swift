import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// Follows one partition for the whole gateway: takes each batch apart once and hands it on.
///
/// Where the log was trimmed before it was read, it goes on at the first seq that is there. It stops for good where the
/// log is not what was read before (`diverged`), and before a barrier that this version does not know.
final class PartitionTail: LogSink {
    private struct State {
        var rules: PartitionRules
        var event = ParsedEvent()
        var next: Seq
        var end: EpochEnd?
        /// The batches read last, to check what later records say of them.
        var recent = Queue<TailBatch>()
        var recentBytes = 0
        var tail: (any LogTail)?
        var isFenced = false
    }

    /// What a feed has to tell.
    enum News: Sendable {
        case batch(TailBatch)
        /// The log was trimmed before it was read: it goes on at this seq.
        case skipped(to: Seq)
        /// The tail has ended; it may be begun again unless it is fenced.
        case ended(LogError, isFenced: Bool)
    }

    private static let (batchesRemembered, bytesRemembered) = (64, 8 << 20)

    let partition: Int
    private let log: any EventLog
    private let state: Mutex<State>
    private let room: @Sendable () -> Bool
    private let tell: @Sendable (PartitionTail, News) -> Void

    /// A feed that reads from there on, once it is started. `tell` is called on a thread of the log, which it does not
    /// hold up where `hasRoom` says so.
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

    /// Begins, or goes on where it ended. Not on an event loop.
    func start() {
        guard let next = state.withLock({ $0.isFenced ? nil : $0.next }) else { return }
        let tail = log.tail(partition, from: next, to: self)
        let isStopped = state.withLock { state in
            if !state.isFenced { state.tail = tail }
            return state.isFenced
        }
        if isStopped { tail.cancel() }
    }

    /// Whether the log answers for the partition: throws where the next record cannot be had, or the last one if none
    /// is to come and that one was not trimmed. True if there is a next one. Not on an event loop.
    func probe() throws(LogError) -> Bool {
        let bounds = try log.bounds(partition)
        let next = max(bounds.first, state.withLock { $0.next })
        let seq = min(next, bounds.last)
        if seq >= max(0, bounds.first) { _ = try log.read(partition, from: seq, to: seq, bytes: 1) }
        return next <= bounds.last
    }

    /// Ends it. Not on an event loop, nor from inside `tell`.
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
            let (read, stoppedBefore) = take(batch, &state)
            var news: [News] = []
            if let read {
                if let error = disagreement(read, state.recent) {
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

    /// The first and the last record say what their gateway had read before: it must be what was read here. Records
    /// that are void are not believed: anybody may have written them.
    private func disagreement(_ read: TailBatch, _ recent: Queue<TailBatch>) -> LogError? {
        let batch = read.records
        let ends = [read.kinds.firstIndex(where: \.isWitness), read.kinds.lastIndex(where: \.isWitness)]
        for entry in ends.compactMap({ $0.map { batch.entries[$0] } }) {
            guard let witness = entry.witness else { continue }
            var known: Witness?
            if let earlier = batch.entry(at: witness.seq) {
                known = batch.witness(of: earlier)
            } else {
                let index = recent.partition { $0.last < witness.seq }
                let batch = index < recent.count ? recent[index].records : nil
                known = batch.flatMap { batch in batch.entry(at: witness.seq).map(batch.witness) }
            }
            if witness.seq >= entry.seq || known.map({ $0 != witness }) ?? false {
                return LogError(
                    .diverged,
                    "the record at seq \(entry.seq) was written by one who read something else at \(witness.seq)",
                    seq: witness.seq - 1
                )
            }
        }
        return nil
    }

    /// Says what each record is. Stops before a barrier that is not known.
    private func take(_ batch: RecordBatch, _ state: inout State) -> (TailBatch?, stoppedBefore: Seq?) {
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
                    // The rules have let only valid names through.
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

    /// Seqs at which there is no record; the range may be empty.
    private static func hole(_ seqs: Range<Seq>, _ rules: inout PartitionRules, _ voids: inout VoidTally) {
        guard !seqs.isEmpty else { return }
        rules.hole()
        voids.add(holes: seqs)
    }
}

extension TailBatch.Kind {
    /// Header `p` of such a record is believed. A seed has none.
    fileprivate var isWitness: Bool {
        switch self {
        case .event, .barrier: true
        case .seed, .void: false
        }
    }
}
