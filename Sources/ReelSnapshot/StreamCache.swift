import ReelCore
import ReelSQLite

/// The streams of one partition that are folded in memory. It belongs to the folder's thread.
struct StreamCache {
    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let settings: SnapshotSettings
    private var streams: [StreamName: CachedStream] = [:]
    /// The number of the next stream that the file does not know.
    private var newStream: Int64
    /// Objects, tombstones, sites and streams in memory.
    private var held = 0
    /// The bytes of their objects.
    private var heldBytes = 0

    init(_ file: SnapshotFile, _ identity: SnapshotFile.Identity, _ settings: SnapshotSettings) throws {
        self.file = file
        self.identity = identity
        self.settings = settings
        newStream = (try file.connection.integer("SELECT max(id) FROM stream") ?? 0) + 1
    }

    /// The stream of this name, which the file holds as of a seq where it is not in memory.
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

    /// Writes what changed of a stream. Inside a transaction; `row` is room to be used again. Returns true if the
    /// number of its sites that have not ended is another one.
    mutating func write(_ stream: CachedStream, row: inout [UInt8]) throws -> Bool {
        held -= stream.held
        heldBytes -= stream.heldBytes
        let sitesChanged = try stream.write(to: file, row: &row)
        held += stream.held
        heldBytes += stream.heldBytes
        return sitesChanged
    }

    /// Drops the streams that were written to longest ago, until few enough objects are in memory; a quarter more than
    /// needed, so that it is not done for every batch. Returns false if there are few enough.
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
