import ReelCore
import ReelSQLite

/// A stream that the folder holds in memory. It belongs to the folder's thread.
final class CachedStream {
    /// The stream's number in the file.
    let id: Int64
    /// Its name.
    let name: StreamName
    /// The key of its records.
    let key: [UInt8]
    var fold: Fold
    /// The events that its rows lack.
    var pending = PendingEvents()
    /// The last seq of its last chunk in the index of events; −1: there is none.
    private var lastEvent: Seq
    /// The gateway's clock in its last event; nil: not known.
    private var lastMs: Int64?
    /// The number of the batch that changed it last.
    var batch: Int64 = 0
    /// The time that folding it has taken in that batch.
    var spent = Duration.zero
    /// Its records that wait for its next turn.
    var waiting = WaitingEvents()
    /// True if the next transaction has to write it, however long that takes.
    var mustBeWritten = false
    /// The first seq that was folded and that its rows lack; nil: there is none.
    private var unwritten: Seq?
    /// The number of records that were folded and that its rows lack.
    private(set) var unwrittenCount = 0
    /// The time that writing its rows took the last time.
    private var writeTime = Duration.zero
    /// When they were written.
    private var writtenAt = ContinuousClock.now
    /// How much of the cache it counts for.
    private(set) var held = 0
    /// The bytes that it counts for.
    private(set) var heldBytes = 0
    /// The bytes of its objects when its rows were written last.
    private var writtenBytes: Int
    /// The bytes of the objects among them that changed since.
    private var changedBytes = 0
    /// The sites that had not ended when its rows were written last.
    private var writtenSites: Int

    init(id: Int64, name: StreamName, lastEvent: Seq, lastMs: Int64? = nil, fold: Fold) {
        self.id = id
        self.lastEvent = lastEvent
        self.lastMs = lastMs
        self.name = name
        key = name.key
        self.fold = fold
        writtenSites = fold.liveSites
        writtenBytes = fold.objectBytes
    }

    // MARK: Turns

    /// The time, in nanoseconds, that a byte of a row takes: to be hashed, written to the WAL, and copied from there.
    private static let nanosecondsPerByte = 4
    /// A stream that is written in such a part of a turn is written in each transaction.
    private static let shortPart = 20
    /// A stream is written before it folds more than takes so long to be written.
    private static let longestWrite = Duration.milliseconds(10)
    /// A stream that is folded on and on is written after so many times the time that it takes.
    private static let writePause = 4

    /// The first seq that its rows lack; the greatest seq that there is: they lack nothing.
    var next: Seq { unwritten ?? waiting.next ?? .max }

    /// True if nothing of it waits to be folded or written.
    var isIdle: Bool { waiting.isEmpty && unwritten == nil }

    /// True if the stream may fold another event in this batch, in which its turn is so long. Each turn is one event at
    /// least, but for a stream that has to be written first.
    func hasTurn(of turn: Duration) -> Bool { (spent < turn || spent == .zero) && !isFull }

    /// True if writing what changed takes long, where a turn is so long.
    func isLong(for turn: Duration) -> Bool { max(writeTime, timeToWrite) >= turn / Self.shortPart }

    /// True if no more is folded before it is written.
    private var isFull: Bool { unwritten != nil && timeToWrite >= Self.longestWrite }

    /// True if it is better written than folded on: events that follow share the time that writing takes.
    var isDue: Bool {
        waiting.isEmpty || isFull || ContinuousClock.now - writtenAt >= writeTime * Self.writePause
    }

    /// What changed takes about so long to be written.
    private var timeToWrite: Duration { .nanoseconds(Self.nanosecondsPerByte * (changedBytes + pending.bytes)) }

    /// The record at `seq` was folded. Returns true if the rows lacked nothing before.
    func folded(_ seq: Seq) -> Bool {
        // An object that changes is written whole. Until then it is not in the fold's count of bytes.
        changedBytes = max(changedBytes, writtenBytes - fold.objectBytes)
        unwrittenCount += 1
        guard unwritten == nil else { return false }
        unwritten = seq
        return true
    }

    // MARK: Writing

    /// Writes what the rows lack. Inside a transaction; `row` is room to be used again. Returns true if the number of
    /// sites that have not ended is another one.
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
        (held, heldBytes) = (fold.entryCount + 1, fold.objectBytes)
        (unwritten, unwrittenCount, mustBeWritten) = (nil, 0, false)
        writtenAt = .now
        writeTime = writtenAt - begun
        return before != writtenSites
    }

    private func writeRows(to file: SnapshotFile, row: inout [UInt8]) throws {
        let changes = fold.takeChanges()
        for key in changes.forgottenObjects { try file.deleteObject(id, key: key) }
        for site in changes.forgottenSites { try file.deleteSite(id, site) }
        for slot in changes.objects {
            row.removeAll(keepingCapacity: true)
            fold.writeRow(ofObject: slot, to: &row)
            try row.withUnsafeBytes { data in
                try file.setObject(id, key: fold.key(ofObject: slot), data: data)
            }
        }
        for site in changes.sites {
            row.removeAll(keepingCapacity: true)
            fold.writeRow(ofSite: site, to: &row)
            try row.withUnsafeBytes { data in try file.setSite(id, site, data: data) }
        }
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
}
