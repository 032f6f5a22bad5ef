import ReelCore
import ReelLog
import ReelNode
import ReelSQLite

/// Folds one partition: applies the log's records to the streams in memory, and writes what changed, with the position,
/// in one transaction. It belongs to one thread at a time. After an error it is thrown away; another one goes on from
/// the file.
///
/// Streams are folded in turns: a stream that has taken its time in a batch waits with the rest of its records, and
/// the others are folded and written without it.
final class PartitionFolder {
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
    private static let turnsMax = Duration.milliseconds(20)
    /// A stream that is written faster than this has one event of a transaction even where that has no time.
    private static let shortWrite = Duration.milliseconds(1)
    /// The records that are read beyond the first one that waits. After a restart they are read again.
    private static let aheadMax: Seq = 1 << 20

    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let settings: SnapshotSettings
    private var rules: PartitionRules
    private var event = ParsedEvent()
    private var streams: [StreamName: CachedStream] = [:]
    /// The stream of the last event; the next one is often of the same.
    private var latest: CachedStream?
    /// The streams that changed in the running batch.
    private var changed: [CachedStream] = []
    private var newStream: Int64
    private var batch: Int64 = 0
    /// The last seq that the file holds, of all streams that do not wait.
    private var stored: Seq
    /// The last record that was read.
    private var last: Witness?
    /// The streams whose records wait for a turn.
    private var waiting: [CachedStream] = []
    /// The time that one stream may take of a transaction.
    var turn: Duration
    /// When the last event was folded.
    private var clock = ContinuousClock.now
    /// When the running transaction folds no further event of a stream that has had one.
    private var end = ContinuousClock.now
    /// Objects, tombstones, sites and streams in memory.
    private var held = 0
    /// The bytes of their objects.
    private var heldBytes = 0
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

    /// The next seq to fold: what lies before it is folded in all streams.
    var floor: Seq { waiting.lazy.compactMap(\.waiting.next).min() ?? next }

    /// The streams that wait, and the next seq to fold of each.
    var waitingSeqs: [StreamName: Seq] {
        Dictionary(uniqueKeysWithValues: waiting.map { ($0.name, $0.waiting.next ?? next) })
    }

    /// The records that wait.
    var waitingCount: Int { waiting.reduce(0) { $0 + $1.waiting.count } }

    /// True if no more records may wait: the next ones are read once some of these are folded.
    var isCrowded: Bool {
        waitingCount >= settings.queuedEvents
            || waiting.reduce(0) { $0 + $1.waiting.bytes } >= settings.queuedBytes
            || next - floor >= Self.aheadMax
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
        newStream = (try file.connection.integer("SELECT max(id) FROM stream") ?? 0) + 1
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
                    put(record, into: try cached(name, asOf: next - 1))
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
        try write()
        evict()
        return report
    }

    /// Gives the streams that wait a turn, the one that waits longest first, and writes what changed. Streams for which
    /// the transaction has no time are the first in the next one.
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
        try write()
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
            let mayFold = hasTime || stream.spent == .zero && stream.writeTime < Self.shortWrite
            if stream.waiting.isEmpty, mayFold, stream.hasTurn(of: turn) {
                try foldEvent(value, seq, in: stream, &report)
            } else {
                put(WaitingEvents.Record(seq: seq, value: Array(value)), into: stream)
            }
        case .seed(let seed):
            let stream = try stream(key)
            _ = stream.fold.apply(seed, value, seq: seq)
            seedsEnd = seq + 1
        case .barrier(let barrier):
            if case .retire(_, let name) = barrier, rules.partition(of: name) == identity.partition {
                let stream = try stream(named: name)
                if stream.waiting.isEmpty {
                    stream.fold.apply(barrier, seq: seq)
                } else {
                    put(WaitingEvents.Record(seq: seq, value: [], barrier: barrier), into: stream)
                }
            }
            // It holds for all streams, also those not in memory: the position says so.
            var chunk = EventChunk()
            chunk.append(seq, value, StoredOutcome(code: 0))
            try write(chunk, of: SnapshotFile.barriers, behind: lastBarrier)
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
        stream.events.append(seq, value, outcome)
        report.outcomes.add(outcome)
        if stream.events.isFull { try writeEvents(of: stream) }
        report.events += 1
        let writing = stream.chargeWriting(value.count) + (stream.spent == .zero ? stream.writeTime : .zero)
        let now = ContinuousClock.now
        stream.spent += now - clock + writing
        clock = now
        end -= writing
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
            stream = try cached(name, asOf: stored)
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
        changed.append(stream)
    }

    /// The stream of this name, which the file holds as of a seq where it is not in memory.
    private func cached(_ name: StreamName, asOf seq: Seq) throws -> CachedStream {
        if let known = streams[name] { return known }
        let stream: CachedStream
        if let stored = try StoredStream(
            name,
            identity: identity,
            seq: seq,
            in: file.connection,
            listsChanges: true
        ) {
            stream = CachedStream(
                id: stored.id,
                name: name,
                lastEvent: stored.lastEvent,
                lastMs: stored.lastMs,
                fold: stored.fold
            )
        } else {
            let fold = Fold(stream: name, partition: identity.partition, epoch: identity.epoch, listsChanges: true)
            stream = CachedStream(id: newStream, name: name, lastEvent: .none, fold: fold)
            newStream += 1
        }
        streams[name] = stream
        return stream
    }

    /// Drops the streams that were written to longest ago, until few enough objects are in memory; a quarter more than
    /// needed, so that it is not done for every batch.
    private func evict() {
        guard held > settings.cachedObjects || heldBytes > settings.cachedBytes else { return }
        let idle = streams.values.filter(\.waiting.isEmpty).sorted { $0.batch < $1.batch }
        for stream in idle where streams.count > 1 {
            guard held > settings.cachedObjects / 4 * 3 || heldBytes > settings.cachedBytes / 4 * 3 else { break }
            held -= stream.held
            heldBytes -= stream.writtenBytes
            streams[stream.name] = nil
        }
        latest = nil
    }

    // MARK: Writing

    private func write() throws {
        let start = ContinuousClock.now
        var sitesChanged = false
        if !file.connection.inTransaction { try file.connection.begin() }
        for stream in changed {
            let begun = ContinuousClock.now
            defer { stream.writeTime = ContinuousClock.now - begun }
            if !stream.events.isEmpty { try writeEvents(of: stream) }
            heldBytes -= stream.isHeld ? stream.writtenBytes : 0
            if try stream.writeChanges(to: file, row: &row) { sitesChanged = true }
            held -= stream.held
            stream.held = stream.fold.entryCount + 1
            held += stream.held
            heldBytes += stream.writtenBytes
            stream.isHeld = true
        }
        changed.removeAll(keepingCapacity: true)
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

    private func writeEvents(of stream: CachedStream) throws {
        try write(stream.events, of: stream.id, behind: stream.lastEvent)
        (stream.lastEvent, stream.lastMs) = (stream.events.last, stream.events.lastClock)
        stream.events.removeAll()
    }

    private func write(_ chunk: EventChunk, of stream: Int64, behind before: Seq) throws {
        if !file.connection.inTransaction { try file.connection.begin() }
        try chunk.bytes.withUnsafeBytes {
            try file.addEvents(stream, first: chunk.first, last: chunk.last, before: before, data: $0)
        }
    }
}
