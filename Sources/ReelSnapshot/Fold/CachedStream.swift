import ReelCore
import ReelSQLite

/// A stream that the projector holds in memory. On the fold thread.
final class CachedStream {
    /// The stream's number in the file.
    let id: Int64
    /// The stream's name.
    let name: StreamName
    /// The key of the stream's records.
    let key: [UInt8]
    var fold: Fold
    /// The rows of the fold's objects.
    let rows: StreamRows
    /// The events that the rows lack.
    var pending = PendingEvents()
    /// The last seq of its last chunk in the index of events; −1: there is none.
    private var lastEvent: Seq
    /// The gateway's clock in the last event, in milliseconds since 1970; nil: not known.
    private var lastMs: Int64?
    /// The number of the batch in which the stream last had a turn.
    var batch: Int64 = 0
    /// The time that folding the stream has taken in that batch.
    var spent = Duration.zero
    /// The stream's records that wait for its next turn.
    var waiting = WaitingEvents()
    /// True if the next transaction must write the stream, however long that takes.
    var mustBeWritten = false
    /// The first seq that is folded and that the rows lack; nil: there is none.
    private var unwritten: Seq?
    /// The number of records that are folded and that the rows lack.
    private(set) var unwrittenCount = 0
    /// The duration of the last write of the rows.
    private var writeTime = Duration.zero
    /// The time of the last write of the rows.
    private var writtenAt = ContinuousClock.now
    /// The number of bytes that the stream counts for in the cache.
    private(set) var heldBytes = 0
    /// The size of the stream's objects at the last write of the rows, in bytes.
    private var writtenBytes: Int
    /// The size of those objects that have changed since then, in bytes.
    private var changedBytes = 0
    /// The number of sites that had not ended at the last write of the rows.
    private var writtenSites: Int

    /// `fold` has `rows` as its source.
    init(id: Int64, name: StreamName, lastEvent: Seq, lastMs: Int64? = nil, fold: Fold, rows: StreamRows) {
        self.id = id
        self.lastEvent = lastEvent
        self.lastMs = lastMs
        self.name = name
        key = name.key
        self.fold = fold
        self.rows = rows
        writtenSites = fold.liveSites
        writtenBytes = fold.objectBytes
    }

    // MARK: Turns

    /// The estimated time to write a byte of a row, in nanoseconds: to hash it, write it to the WAL, and copy it from
    /// there.
    private static let nanosecondsPerByte = 4
    /// The divisor of a turn: a stream is written in each transaction if its write takes less than this part of a turn.
    private static let shortPart = 20
    /// The estimated time of a write from which on a stream is written before it folds more.
    private static let longestWrite = Duration.milliseconds(10)
    /// The pause before the next write of a busy stream, as a multiple of the last write's duration.
    private static let writePause = 4
    /// The longest such pause, so that one write that the disk has held up does not delay the next one for seconds.
    private static let writePauseMax = Duration.milliseconds(200)

    /// The first seq that the rows lack; the greatest `Seq` if they lack nothing.
    var next: Seq { unwritten ?? waiting.next ?? .max }

    /// True if no record of the stream waits to be folded or written.
    var isIdle: Bool { waiting.isEmpty && unwritten == nil }

    /// Returns true if the stream may fold another event in this batch. `turn` is the time of a turn. Each turn has at
    /// least one event, except for a stream that must be written first.
    func hasTurn(of turn: Duration) -> Bool { (spent < turn || spent == .zero) && !isFull }

    /// Returns true if writing the changes takes long in comparison with `turn`, the time of a turn.
    func isLong(for turn: Duration) -> Bool { max(writeTime, timeToWrite) >= turn / Self.shortPart }

    /// True if the stream must be written before it folds more.
    private var isFull: Bool { unwritten != nil && timeToWrite >= Self.longestWrite }

    /// True if the stream should be written now. Until then, more events are folded, so that they share one write.
    var isDue: Bool {
        let pause = min(writeTime * Self.writePause, Self.writePauseMax)
        return waiting.isEmpty || isFull || ContinuousClock.now - writtenAt >= pause
    }

    /// The estimated time to write the changes.
    private var timeToWrite: Duration { .nanoseconds(Self.nanosecondsPerByte * (changedBytes + pending.bytes)) }

    /// Notes that the record at `seq` was folded. Returns true if the rows lacked nothing before.
    ///
    /// - Throws: The error of a row that could not be read.
    func folded(_ seq: Seq) throws -> Bool {
        try rows.check()
        // A changed object is written whole. Until then the fold does not count its bytes. An object that was read is
        // probably changed, and its row may be longer: it has the histories of texts.
        changedBytes = max(changedBytes, writtenBytes - fold.objectBytes, rows.bytesRead)
        unwrittenCount += 1
        guard unwritten == nil else { return false }
        unwritten = seq
        return true
    }

    // MARK: Writing

    /// Writes the changes to the rows and the index. Inside a transaction. `row` is a buffer that the caller reuses.
    /// Returns true if the number of sites that have not ended has changed.
    func write(to file: SnapshotFile, row: inout [UInt8]) throws -> Bool {
        let begun = ContinuousClock.now
        for chunk in pending.chunks where !chunk.isEmpty {
            try file.addEvents(id, chunk, behind: lastEvent)
            (lastEvent, lastMs) = (chunk.last, chunk.lastClock)
        }
        pending.removeAll()
        let before = writtenSites
        try writeRows(to: file, row: &row)
        (writtenSites, writtenBytes, changedBytes) = (fold.liveSites, fold.objectBytes, 0)
        countMemory()
        (unwritten, unwrittenCount, mustBeWritten) = (nil, 0, false)
        writtenAt = .now
        writeTime = writtenAt - begun
        return before != writtenSites
    }

    private func writeRows(to file: SnapshotFile, row: inout [UInt8]) throws {
        var failure: (any Error)?
        try fold.takeUnwrittenRows { changed throws(ReelError) in
            guard failure == nil else { return }
            do { try Self.write(changed, of: id, to: file) } catch { failure = error }
        }
        fold.takeUnwrittenSites { site, row in
            guard failure == nil else { return }
            do {
                guard let row else { return try file.deleteSite(id, site) }
                try row.withUnsafeBytes { try file.setSite(id, site, data: $0) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        rows.written()
        row.removeAll(keepingCapacity: true)
        fold.writeHead(to: &row)
        let digest = fold.digest()
        try row.withUnsafeBytes { head in
            try file.setStream(
                id,
                name: name,
                head: head,
                digest: digest,
                sites: fold.liveSites,
                lastEvent: lastEvent,
                figures: StreamFigures(objects: fold.livingObjects, bytes: fold.objectBytes, atMs: lastMs)
            )
        }
    }

    private static func write(_ changed: UnwrittenRow, of stream: Int64, to file: SnapshotFile) throws {
        let key = ObjectKey.stored(changed.key)
        guard let row = changed.row else { return try file.deleteObject(stream, key: key) }
        try row.bytes.withUnsafeBytes { data in
            try file.setObject(stream, key: key, data: data, digest: row.digest, aging: row.agingSeq)
        }
    }

    // MARK: Memory

    /// An estimate of the memory that a stream takes in bytes, without objects and sites.
    private static let streamMemory = 2_048
    /// An estimate of the memory that a site takes in bytes.
    private static let siteMemory = 256

    /// Removes objects from memory that are equal to their rows, the least recently used first, down to a size in
    /// bytes.
    func evict(above bytes: Int) {
        rows.becomePartial()
        fold.evict(above: max(0, bytes - ownMemory))
        countMemory()
    }

    private func countMemory() { heldBytes = ownMemory + fold.cachedBytes }

    /// The memory that stays if all objects are removed.
    private var ownMemory: Int { Self.streamMemory + Self.siteMemory * fold.siteCount }
}
