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
    /// Its events of the running batch that are not written yet.
    var events = EventChunk()
    /// The last seq of its last chunk in the index of events; −1: there is none.
    var lastEvent: Seq
    /// The gateway's clock in its last event; nil: not known.
    var lastMs: Int64?
    /// The number of the batch that changed it last.
    var batch: Int64 = 0
    /// The time that folding it has taken in that batch.
    var spent = Duration.zero
    /// The time that writing its rows took the last time.
    var writeTime = Duration.zero
    /// Its records that wait for its next turn.
    var waiting = WaitingEvents()
    /// How much of the folder's memory it counts for.
    var held = 0
    /// True if it counts for the folder's memory.
    var isHeld = false
    /// The bytes of its objects when its rows were written last.
    private(set) var writtenBytes: Int
    /// The bytes of rows that the running transaction has to write for it.
    private var bytesToWrite = 0
    /// The sites that had not ended when its rows were written last.
    private(set) var writtenSites: Int

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

    /// True if the stream may fold another event in this batch, in which its turn is so long. Each turn is one event at
    /// least.
    func hasTurn(of turn: Duration) -> Bool { spent < turn || spent == .zero }

    /// The time, in nanoseconds, that a byte of a row takes: to be hashed, written to the WAL, and copied from there.
    private static let nanosecondsPerByte = 4

    /// Returns the time that an event of so many bytes adds to writing the stream's rows. An object that changes is
    /// written whole, once; it leaves the fold's count of bytes until then.
    func chargeWriting(_ eventBytes: Int) -> Duration {
        let changed = max(0, writtenBytes - fold.objectBytes)
        let added = max(0, changed - bytesToWrite) + eventBytes
        bytesToWrite = max(bytesToWrite, changed)
        return .nanoseconds(Self.nanosecondsPerByte * added)
    }

    /// Writes the rows that changed since the last time. Inside a transaction; `row` is room to be used again. Returns
    /// true if the number of sites that have not ended is another one.
    func writeChanges(to file: SnapshotFile, row: inout [UInt8]) throws -> Bool {
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
        let sites = fold.liveSites
        fold.writeHead(to: &row)
        let digest = fold.digest()
        try row.withUnsafeBytes { head in
            try file.setStream(
                id,
                name: name,
                head: head,
                digest: digest,
                sites: sites,
                lastEvent: lastEvent,
                figures: StreamFigures(objects: fold.livingObjects, bytes: fold.objectBytes, atMs: lastMs)
            )
        }
        defer { (writtenSites, writtenBytes, bytesToWrite) = (sites, fold.objectBytes, 0) }
        return writtenSites != sites
    }
}
