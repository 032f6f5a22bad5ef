import ReelCore
import ReelLog
import ReelNode
import ReelSQLite

/// Folds one partition: applies the log's records to the streams in memory, and writes what changed, with the position,
/// in one transaction. It belongs to one thread at a time. After an error it is thrown away; another one goes on from
/// the file.
///
/// Streams are folded in turns: a stream that has taken its time in a batch waits with the rest of its records, and
/// the others are folded and written without it. A stream whose rows take long to write is written in turns, too.
final class PartitionProjector {
    /// Why it cannot go on.
    enum Stop: Error {
        /// A barrier that this version does not know stands at this seq.
        case unknownBarrier(Seq)
        /// The log's batch does not go on where the file ends.
        case hole(found: Seq, expected: Seq)
    }

    /// What one batch was.
    struct Report {
        /// Consecutive seqs that were read.
        var seqs = 0
        /// Events folded.
        var events = 0
        /// What became of them.
        var outcomes = OutcomeTally()
        var voids = VoidTally()
        /// Before a barrier at this seq, which this version does not know, it ended; nil: it did not.
        var unknownBarrier: Seq?
    }

    /// The time that all streams together may take of a transaction.
    private static let turnsMax = Duration.milliseconds(10)
    /// The records that are read beyond the first one that waits. After a restart they are read again.
    private static let aheadMax: Seq = 1 << 20

    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let settings: SnapshotSettings
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var streams: StreamCache
    /// The stream of the last event; the next one is often of the same.
    private var latest: CachedStream?
    private var batch: Int64 = 0
    /// The last seq that the file holds, of all streams that do not wait.
    private var stored: Seq
    /// The last record that was read.
    private var last: Witness?
    /// The streams whose records wait for a turn.
    private var waiting: [CachedStream] = []
    /// The streams that were folded beyond their rows. Between transactions these are streams that take long to write.
    private var unwritten: [CachedStream] = []
    /// The time that one stream may take of a transaction.
    var turn: Duration
    /// When the last event was folded.
    private var clock = ContinuousClock.now
    /// When the running transaction folds no further event of a stream that has had one.
    private var end = ContinuousClock.now
    /// The index has every event from this seq on.
    private var oldestEvent: Seq
    /// The seq of the last barrier in the index; −1: there is none.
    private var lastBarrier: Seq
    private var checkpoint: CheckpointPlan
    private var row: [UInt8] = []
    /// The streams that have many sites, as of the last transaction.
    private(set) var crowd: SiteCrowd

    /// The next seq to read.
    private(set) var next: Seq
    /// The seq behind the seeds that were folded; 0: there were none.
    private var seedsEnd: Seq
    /// How long the last transaction took.
    private(set) var commitTime = Duration.zero
    /// How long the checkpoint behind it took; nil: there was none.
    private(set) var checkpointTime: Duration?

    /// Where in its life the partition is.
    var phase: PartitionRules.Phase { rules.phase }

    /// The next seq to write: the file holds what lies before it of all streams.
    var floor: Seq { min(unwritten.lazy.map(\.next).min() ?? next, waiting.lazy.map(\.next).min() ?? next) }

    /// The streams that wait to be folded or written, and the first seq of each that its rows lack.
    var waitingSeqs: [StreamName: Seq] {
        Dictionary((unwritten + waiting).map { ($0.name, $0.next) }) { first, _ in first }
    }

    /// The records that wait to be folded or written.
    var waitingCount: Int {
        waiting.reduce(0) { $0 + $1.waiting.count } + unwritten.reduce(0) { $0 + $1.unwrittenCount }
    }

    private var waitingBytes: Int {
        waiting.reduce(0) { $0 + $1.waiting.bytes } + unwritten.reduce(0) { $0 + $1.pending.bytes }
    }

    /// True if no more records may wait: the next ones are read once some of these are written.
    var isCrowded: Bool {
        waitingCount >= settings.queuedEvents || waitingBytes >= settings.queuedBytes || next - floor >= Self.aheadMax
    }

    /// Goes on where the file says. The log is the one that was folded; of it the records are read again that waited
    /// when the file was written.
    init(
        file: SnapshotFile,
        identity: SnapshotFile.Identity,
        settings: SnapshotSettings,
        log: any EventLog
    ) throws {
        self.file = file
        self.identity = identity
        self.settings = settings
        turn = settings.turn
        let position = try StoredPosition(reading: file.connection)
        next = position.read
        seedsEnd = position.seedsEnd
        stored = position.read - 1
        last = position.last
        oldestEvent = position.oldestEvent
        lastBarrier = position.lastBarrier
        checkpoint = CheckpointPlan(frames: settings.checkpointBytes / SnapshotFile.pageBytes)
        rules = PartitionRules(partition: identity.partition, of: identity.partitions, phase: position.phase)
        crowd = try SiteCrowd(of: identity.partition, seq: position.seq, in: file.connection)
        streams = try StreamCache(file, identity, settings)
        if position.read > position.next { try restoreWaiting(position, from: log) }
    }

    private func restoreWaiting(_ position: StoredPosition, from log: any EventLog) throws {
        let streams = Dictionary(uniqueKeysWithValues: position.waiting.map { ($0.key.key, ($0.key, $0.value)) })
        // Seeds never wait.
        var rules = PartitionRules(partition: identity.partition, of: identity.partitions, phase: .open)
        try log.scan(identity.partition, from: position.next, to: position.read - 1) { records in
            for entry in records.entries {
                try records.withRecord(entry) { key, value throws in
                    var record = WaitingEvents.Record(seq: entry.seq, value: Array(value))
                    var owner = Array(key)
                    switch rules.read(key: key, value: value, into: &event) {
                    case .event: break
                    case .barrier(let barrier):
                        guard case .retire(_, let name) = barrier else { return }
                        (owner, record.barrier) = (name.key, barrier)
                    default: return
                    }
                    guard let (name, next) = streams[owner], record.seq >= next else { return }
                    put(record, into: try self.streams.stream(name, asOf: next - 1))
                }
            }
        }
        guard waitingSeqs == position.waiting else {
            throw SnapshotFile.Unusable(reason: "the log has no record where a stream of the file waits")
        }
    }

    /// Folds `entries` of a batch, which account for the seqs up to `end`, and writes what they changed; of what a
    /// barrier stops that is not known, all before it. Records of streams that wait are put behind those that wait.
    func fold(_ entries: ArraySlice<RecordBatch.Entry>, of records: RecordBatch, upTo end: Seq) throws -> Report {
        beginTurns()
        var report = Report()
        let start = next
        for entry in entries {
            guard entry.seq >= next else { throw Stop.hole(found: entry.seq, expected: next) }
            hole(next..<entry.seq, &report)
            next = entry.seq
            let isFolded = try records.withRecord(entry) { key, value in try fold(key, value, entry.seq, &report) }
            guard isFolded else {
                report.unknownBarrier = entry.seq
                break
            }
            next += 1
            last = records.witness(of: entry)
        }
        if report.unknownBarrier == nil, end > next {
            hole(next..<end, &report)
            next = end
        }
        report.seqs = Int(next - start)
        if report.seqs == 0, report.unknownBarrier != nil { return report }
        try write(longOnes: false)
        evict()
        return report
    }

    /// Gives the streams that wait a turn, the one that waits longest first, and writes what changed, also of streams
    /// that take long to write. Streams for which the transaction has no time are the first in the next one.
    func foldWaiting() throws -> Report {
        beginTurns()
        var report = Report()
        for _ in waiting.indices where hasTime {
            let stream = waiting.removeFirst()
            touch(stream)
            while stream.hasTurn(of: turn), let record = stream.waiting.popFirst() {
                try fold(record, in: stream, &report)
            }
            if !stream.waiting.isEmpty { waiting.append(stream) }
        }
        try write(longOnes: true)
        evict()
        return report
    }

    private func beginTurns() {
        batch += 1
        clock = .now
        end = clock + max(Self.turnsMax, turn)
    }

    /// False once the streams together have taken so long that the transaction is written.
    private var hasTime: Bool { clock < end }

    /// Seqs at which there is no record; the range may be empty.
    private func hole(_ seqs: Range<Seq>, _ report: inout Report) {
        guard !seqs.isEmpty else { return }
        rules.hole()
        report.voids.add(holes: seqs)
    }

    /// False: it is a barrier that this version does not know.
    private func fold(_ key: Bytes, _ value: Bytes, _ seq: Seq, _ report: inout Report) throws -> Bool {
        switch rules.read(key: key, value: value, into: &event) {
        case .event:
            let stream = try stream(key)
            let mayFold = hasTime || stream.spent == .zero && !stream.isLong(for: turn)
            if stream.waiting.isEmpty, mayFold, stream.hasTurn(of: turn) {
                try foldEvent(value, seq, in: stream, &report)
            } else {
                put(WaitingEvents.Record(seq: seq, value: Array(value)), into: stream)
            }
        case .seed(let seed):
            let stream = try stream(key)
            _ = stream.fold.apply(seed, value, seq: seq)
            folded(seq, in: stream)
            stream.mustBeWritten = true
            seedsEnd = seq + 1
        case .barrier(let barrier):
            if case .retire(_, let name) = barrier, rules.partition(of: name) == identity.partition {
                let stream = try stream(named: name)
                if stream.waiting.isEmpty {
                    stream.fold.apply(barrier, seq: seq)
                    folded(seq, in: stream)
                } else {
                    put(WaitingEvents.Record(seq: seq, value: [], barrier: barrier), into: stream)
                }
            }
            // It holds for all streams, also those not in memory: the position says so.
            var chunk = EventChunk()
            chunk.append(seq, value, StoredOutcome(code: 0))
            if !file.connection.inTransaction { try file.connection.begin() }
            try file.addEvents(SnapshotFile.barriers, chunk, behind: lastBarrier)
            lastBarrier = seq
        case .unknownBarrier:
            return false
        case .void(let void):
            report.voids.add(void, seq: seq, key: key)
        }
        return true
    }

    /// Folds the event that `event` holds.
    private func foldEvent(_ value: Bytes, _ seq: Seq, in stream: CachedStream, _ report: inout Report) throws {
        let outcome = StoredOutcome(stream.fold.apply(event, value, seq: seq))
        stream.pending.append(seq, value, outcome)
        report.outcomes.add(outcome)
        folded(seq, in: stream)
        report.events += 1
        let now = ContinuousClock.now
        stream.spent += now - clock
        clock = now
    }

    /// The record at this seq is folded in its stream and not written yet.
    private func folded(_ seq: Seq, in stream: CachedStream) {
        if stream.folded(seq) { unwritten.append(stream) }
    }

    // MARK: Streams that wait

    private func put(_ record: WaitingEvents.Record, into stream: CachedStream) {
        if stream.waiting.isEmpty { waiting.append(stream) }
        stream.waiting.append(record)
    }

    /// Folds a record that has waited.
    private func fold(_ record: WaitingEvents.Record, in stream: CachedStream, _ report: inout Report) throws {
        if let barrier = record.barrier {
            stream.fold.apply(barrier, seq: record.seq)
            folded(record.seq, in: stream)
        } else {
            try record.value.withUnsafeBytes { value in
                // It was an event when it was read.
                try event.parse(value)
                try foldEvent(value, record.seq, in: stream, &report)
            }
        }
    }

    // MARK: Streams

    /// The stream of this name, as one that changes.
    private func stream(named name: StreamName) throws -> CachedStream {
        let key = Array(name.description.utf8)
        return try key.withUnsafeBytes { key throws in try stream(key) }
    }

    /// The stream of a record's key, as one that changes.
    private func stream(_ key: Bytes) throws -> CachedStream {
        let stream: CachedStream
        if let latest, latest.key.withUnsafeBytes({ $0.equals(key) }) {
            stream = latest
        } else {
            // The rules have let only valid names through.
            guard let name = StreamName(bytes: key) else {
                throw SnapshotError(.internal, "found a key that is no stream")
            }
            stream = try streams.stream(name, asOf: stored)
            latest = stream
        }
        touch(stream)
        return stream
    }

    /// Begins the stream's turn in this batch.
    private func touch(_ stream: CachedStream) {
        guard stream.batch != batch else { return }
        stream.batch = batch
        stream.spent = .zero
    }

    private func evict() {
        if streams.evict() { latest = nil }
    }

    // MARK: Writing

    /// Writes in one transaction what was folded, and the position. Streams that take long to write are written only
    /// with `longOnes`, in the order in which they were folded: one, and more while there is time.
    private func write(longOnes: Bool) throws {
        let start = ContinuousClock.now
        var sitesChanged = false
        if !file.connection.inTransaction { try file.connection.begin() }
        var (left, mayBeLong): ([CachedStream], Bool) = ([], longOnes)
        for stream in unwritten {
            let isLong = stream.isLong(for: turn)
            guard stream.mustBeWritten || !isLong || mayBeLong && stream.isDue else {
                left.append(stream)
                continue
            }
            if try streams.write(stream, row: &row) { sitesChanged = true }
            if isLong { mayBeLong = mayBeLong && ContinuousClock.now < end }
        }
        unwritten = left
        // Seeds are no events: the index begins behind them.
        let floor = floor
        oldestEvent = max(oldestEvent, floor - settings.keptEvents, seedsEnd)
        try file.trimEvents(before: oldestEvent)
        let position = StoredPosition(
            next: floor,
            read: next,
            waiting: waitingSeqs,
            phase: rules.phase,
            last: last,
            seedsEnd: seedsEnd,
            oldestEvent: oldestEvent,
            lastBarrier: lastBarrier
        )
        try position.write(to: file)
        try file.connection.commit()
        let committed = ContinuousClock.now
        commitTime = committed - start
        checkpointTime = nil
        stored = next - 1
        if sitesChanged { crowd = try SiteCrowd(of: identity.partition, seq: stored, in: file.connection) }
        if let effort = checkpoint.next(walFrames: file.connection.walFrames) {
            try file.connection.checkpoint(effort)
            checkpointTime = ContinuousClock.now - committed
        }
    }
}
