import ReelCore
import ReelLog
import ReelNode
import ReelSQLite

/// Folds one partition. It applies the log's records to the streams in memory, and writes the changes and the position
/// in one transaction. Only one thread may use it. After an error it is discarded, and a new one continues from the
/// file.
///
/// Streams are folded in turns. A stream that has used up its turn in a batch waits with its remaining records, while
/// the others are folded and written. A stream with rows that take long to write is written in turns, too.
final class PartitionProjector {
    /// The reasons why folding cannot continue.
    enum Stop: Error {
        /// The record at this seq is a barrier that this version does not know.
        case unknownBarrier(Seq)
        /// The log's batch does not continue where the file ends.
        case hole(found: Seq, expected: Seq)
    }

    /// The result of one transaction.
    struct Report {
        /// The number of consecutive seqs that were read.
        var seqs = 0
        /// The number of events folded.
        var events = 0
        /// The outcomes of these events.
        var outcomes = OutcomeTally()
        var voids = VoidTally()
        /// The seq of a barrier that this version does not know, before which the batch ended; nil: there was none.
        var unknownBarrier: Seq?
    }

    /// The time that all streams together may take in a transaction.
    private static let turnsMax = Duration.milliseconds(10)
    /// The maximum number of seqs that are read beyond the first record that waits. After a restart they are read
    /// again.
    private static let aheadMax: Seq = 1 << 20

    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let settings: SnapshotSettings
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var streams: StreamCache
    /// The stream of the last event; the next event often belongs to the same.
    private var latest: CachedStream?
    private var batch: Int64 = 0
    /// The last seq that the file holds in all streams that do not wait.
    private var stored: Seq
    /// The last record that was read.
    private var last: Witness?
    /// The streams with records that wait for a turn.
    private var waiting: [CachedStream] = []
    /// The streams that are folded further than their rows. Between transactions these are streams that take long to
    /// write.
    private var unwritten: [CachedStream] = []
    /// The time that one stream may take in a transaction.
    var turn: Duration
    /// The time when the last event was folded.
    private var clock = ContinuousClock.now
    /// The time after which the running transaction folds no further event of a stream of which it has folded one.
    private var end = ContinuousClock.now
    /// The first seq from which on the index holds every event.
    private var oldestEvent: Seq
    /// The seq of the last barrier in the index; −1: none.
    private var lastBarrier: Seq
    private var checkpoint: CheckpointPlan
    private var row: [UInt8] = []
    /// The streams that have many sites, as of the last transaction.
    private(set) var crowd: SiteCrowd

    /// The next seq to read.
    private(set) var next: Seq
    /// The seq after the folded seeds; 0: there were none.
    private var seedsEnd: Seq
    /// The duration of the last transaction.
    private(set) var commitTime = Duration.zero
    /// The duration of the checkpoint after the last transaction; nil: there was none.
    private(set) var checkpointTime: Duration?

    /// The phase of the partition.
    var phase: PartitionRules.Phase { rules.phase }

    /// The next seq to write: the file holds all streams up to the seq before it.
    var floor: Seq { min(unwritten.lazy.map(\.next).min() ?? next, waiting.lazy.map(\.next).min() ?? next) }

    /// The streams that wait to be folded or written, each with the first seq that its rows lack.
    var waitingSeqs: [StreamName: Seq] {
        Dictionary((unwritten + waiting).map { ($0.name, $0.next) }) { first, _ in first }
    }

    /// The number of records that wait to be folded or written.
    var waitingCount: Int {
        waiting.reduce(0) { $0 + $1.waiting.count } + unwritten.reduce(0) { $0 + $1.unwrittenCount }
    }

    /// An estimate of the memory that the streams take, in bytes.
    var cachedBytes: Int { streams.heldBytes }

    private var waitingBytes: Int {
        waiting.reduce(0) { $0 + $1.waiting.bytes } + unwritten.reduce(0) { $0 + $1.pending.bytes }
    }

    /// True if no more records may wait: the caller reads on once some of these are written.
    var isCrowded: Bool {
        waitingCount >= settings.queuedEvents || waitingBytes >= settings.queuedBytes || next - floor >= Self.aheadMax
    }

    /// Continues at the position of the file. `log` must be the log that was folded into the file. The records that
    /// waited when the file was written are read from it again. `budget` limits the memory of all partitions.
    init(
        file: SnapshotFile,
        identity: SnapshotFile.Identity,
        settings: SnapshotSettings,
        budget: CacheBudget,
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
        streams = try StreamCache(file, identity, budget)
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
                    enqueue(record, into: try self.streams.stream(name, asOf: next - 1))
                }
            }
        }
        guard waitingSeqs == position.waiting else {
            throw SnapshotFile.Unusable(reason: "the log lacks a record for which a stream of the file waits")
        }
    }

    /// Folds `entries` of a batch and writes the changes. Records of streams that wait are queued after the waiting
    /// ones.
    ///
    /// - Parameters:
    ///   - entries: The entries to fold.
    ///   - records: The batch that holds the entries.
    ///   - end: The seq after the last one that the entries account for.
    /// - Returns: The result. If it has an `unknownBarrier`, everything before that barrier is folded.
    /// - Throws: `Stop.hole`, and the errors of the file.
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

    /// Gives each waiting stream a turn, the longest-waiting first, and writes the changes, also of streams that take
    /// long to write. Streams for which the transaction has no time are the first in the next one.
    func foldWaiting() throws -> Report {
        beginTurns()
        var report = Report()
        for _ in waiting.indices where hasTime {
            let stream = waiting.removeFirst()
            startTurn(stream)
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

    /// False once the streams together have used up the time of the transaction.
    private var hasTime: Bool { clock < end }

    /// Counts seqs without a record; the range may be empty.
    private func hole(_ seqs: Range<Seq>, _ report: inout Report) {
        guard !seqs.isEmpty else { return }
        rules.hole()
        report.voids.add(holes: seqs)
    }

    /// Folds a record. Returns false for a barrier that this version does not know.
    private func fold(_ key: Bytes, _ value: Bytes, _ seq: Seq, _ report: inout Report) throws -> Bool {
        switch rules.read(key: key, value: value, into: &event) {
        case .event:
            let stream = try stream(key)
            let mayFold = hasTime || stream.spent == .zero && !stream.isLong(for: turn)
            if stream.waiting.isEmpty, mayFold, stream.hasTurn(of: turn) {
                try foldEvent(value, seq, in: stream, &report)
            } else {
                enqueue(WaitingEvents.Record(seq: seq, value: Array(value)), into: stream)
            }
        case .seed(let seed):
            let stream = try stream(key)
            _ = stream.fold.apply(seed, value, seq: seq)
            try folded(seq, in: stream)
            stream.mustBeWritten = true
            seedsEnd = seq + 1
        case .barrier(let barrier):
            if case .retire(_, let name) = barrier, rules.partition(of: name) == identity.partition {
                let stream = try stream(named: name)
                if stream.waiting.isEmpty {
                    stream.fold.apply(barrier, seq: seq)
                    try folded(seq, in: stream)
                } else {
                    enqueue(WaitingEvents.Record(seq: seq, value: [], barrier: barrier), into: stream)
                }
            }
            // The barrier applies to all streams, also to those that are not in memory: the position records that.
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
        try folded(seq, in: stream)
        report.events += 1
        let now = ContinuousClock.now
        stream.spent += now - clock
        clock = now
    }

    /// Notes that the record at this seq is folded in its stream and not written yet.
    private func folded(_ seq: Seq, in stream: CachedStream) throws {
        if try stream.folded(seq) { unwritten.append(stream) }
    }

    // MARK: Streams that wait

    private func enqueue(_ record: WaitingEvents.Record, into stream: CachedStream) {
        if stream.waiting.isEmpty { waiting.append(stream) }
        stream.waiting.append(record)
    }

    /// Folds a record that has waited.
    private func fold(_ record: WaitingEvents.Record, in stream: CachedStream, _ report: inout Report) throws {
        if let barrier = record.barrier {
            stream.fold.apply(barrier, seq: record.seq)
            try folded(record.seq, in: stream)
        } else {
            try record.value.withUnsafeBytes { value in
                // The record was an event when it was read.
                try event.parse(value)
                try foldEvent(value, record.seq, in: stream, &report)
            }
        }
    }

    // MARK: Streams

    /// Returns the stream of this name and begins its turn.
    private func stream(named name: StreamName) throws -> CachedStream {
        let key = Array(name.description.utf8)
        return try key.withUnsafeBytes { key throws in try stream(key) }
    }

    /// Returns the stream of a record's key and begins its turn.
    private func stream(_ key: Bytes) throws -> CachedStream {
        let stream: CachedStream
        if let latest, latest.key.withUnsafeBytes({ $0.equals(key) }) {
            stream = latest
        } else {
            // The rules have accepted valid names only.
            guard let name = StreamName(bytes: key) else {
                throw SnapshotError(.internal, "found a key that is no stream")
            }
            stream = try streams.stream(name, asOf: stored)
            latest = stream
        }
        startTurn(stream)
        return stream
    }

    /// Begins the stream's turn in this batch, unless it has begun.
    private func startTurn(_ stream: CachedStream) {
        guard stream.batch != batch else { return }
        stream.batch = batch
        stream.spent = .zero
    }

    private func evict() {
        if streams.evict() { latest = nil }
    }

    /// Frees the memory that other partitions need.
    func trim() {
        if streams.trim() { latest = nil }
    }

    // MARK: Writing

    /// Writes the folded changes and the position in one transaction. Streams that take long to write are written only
    /// with `longOnes`, in the order in which they were folded: at least one, and more while there is time.
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
        // Seeds are not events: the index begins after them.
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
