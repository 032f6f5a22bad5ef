import ReelCore
import ReelSQLite

/// The streams of one partition that are folded in memory. On the fold thread.
struct StreamCache {
    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let settings: SnapshotSettings
    private var streams: [StreamName: CachedStream] = [:]
    /// The number of the next stream that the file does not know.
    private var newStream: Int64
    /// The number of objects, tombstones, sites and streams in memory.
    private var held = 0
    /// The size of their objects, in bytes.
    private var heldBytes = 0

    init(_ file: SnapshotFile, _ identity: SnapshotFile.Identity, _ settings: SnapshotSettings) throws {
        self.file = file
        self.identity = identity
        self.settings = settings
        newStream = (try file.connection.integer("SELECT max(id) FROM stream") ?? 0) + 1
    }

    /// Returns the stream of this name. If it is not in memory, it is read from the file, which holds it as of `seq`.
    mutating func stream(_ name: StreamName, asOf seq: Seq) throws -> CachedStream {
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
                fold: stored.fold,
                rowBytes: stored.rowBytes
            )
        } else {
            let fold = Fold(stream: name, partition: identity.partition, epoch: identity.epoch, listsChanges: true)
            stream = CachedStream(id: newStream, name: name, lastEvent: .none, fold: fold)
            newStream += 1
        }
        streams[name] = stream
        return stream
    }

    /// Writes the changes of a stream. Inside a transaction. `row` is a buffer that the caller reuses. Returns true if
    /// the number of the stream's sites that have not ended has changed.
    mutating func write(_ stream: CachedStream, row: inout [UInt8]) throws -> Bool {
        held -= stream.held
        heldBytes -= stream.heldBytes
        let sitesChanged = try stream.write(to: file, row: &row)
        held += stream.held
        heldBytes += stream.heldBytes
        return sitesChanged
    }

    /// Drops the least recently changed idle streams if memory exceeds its limits. It drops them down to three quarters
    /// of the limits, so that it does not run for every batch. Returns false if the limits are not exceeded.
    mutating func evict() -> Bool {
        guard held > settings.cachedObjects || heldBytes > settings.cachedBytes else { return false }
        let idle = streams.values.filter(\.isIdle).sorted { $0.batch < $1.batch }
        for stream in idle where streams.count > 1 {
            guard held > settings.cachedObjects / 4 * 3 || heldBytes > settings.cachedBytes / 4 * 3 else { break }
            held -= stream.held
            heldBytes -= stream.heldBytes
            streams[stream.name] = nil
        }
        return true
    }
}
