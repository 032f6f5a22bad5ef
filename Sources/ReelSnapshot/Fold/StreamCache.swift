import ReelCore
import ReelSQLite

/// The streams of one partition that are folded in memory. On the fold thread.
struct StreamCache {
    private let file: SnapshotFile
    private let identity: SnapshotFile.Identity
    private let budget: CacheBudget
    private var streams: [StreamName: CachedStream] = [:]
    /// The number of the next stream that the file does not know.
    private var newStream: Int64
    /// An estimate of the memory that the streams take, in bytes.
    private(set) var heldBytes = 0

    init(_ file: SnapshotFile, _ identity: SnapshotFile.Identity, _ budget: CacheBudget) throws {
        self.file = file
        self.identity = identity
        self.budget = budget
        newStream = (try file.connection.integer("SELECT max(id) FROM stream") ?? 0) + 1
    }

    /// Returns the stream of this name. If it is not in memory, it is read from the file without its objects. The file
    /// holds it as of `seq`.
    mutating func stream(_ name: StreamName, asOf seq: Seq) throws -> CachedStream {
        if let known = streams[name] { return known }
        let stream: CachedStream
        var source: StreamRows?
        let stored = try StoredStream(name, identity: identity, seq: seq, in: file.connection) { id in
            let rows = StreamRows(of: id, in: file, .partial)
            source = rows
            return rows
        }
        if let stored, let source {
            try source.check()
            stream = CachedStream(
                id: stored.id,
                name: name,
                lastEvent: stored.lastEvent,
                lastMs: stored.lastMs,
                fold: stored.fold,
                rows: source
            )
        } else {
            let rows = StreamRows(of: newStream, in: file, .whole)
            let fold = Fold(stream: name, partition: identity.partition, epoch: identity.epoch, source: rows)
            stream = CachedStream(id: newStream, name: name, lastEvent: .none, fold: fold, rows: rows)
            newStream += 1
        }
        streams[name] = stream
        return stream
    }

    /// Writes the changes of a stream. Inside a transaction. `row` is a buffer that the caller reuses. Returns true if
    /// the number of the stream's sites that have not ended has changed.
    mutating func write(_ stream: CachedStream, row: inout [UInt8]) throws -> Bool {
        heldBytes -= stream.heldBytes
        let sitesChanged = try stream.write(to: file, row: &row)
        heldBytes += stream.heldBytes
        return sitesChanged
    }

    /// Frees memory if it exceeds the limit of the partition, down to three quarters of the limit, so that it does not
    /// run for every batch. A stream that takes half of the limit or more loses its least recently used objects. Then
    /// the least recently changed idle streams are dropped. Returns false if the limit is not exceeded.
    mutating func evict() -> Bool {
        let limit = budget.hold(heldBytes, in: identity.partition)
        return evict(above: limit)
    }

    /// Frees the memory that other partitions need, down to three quarters of the partition's share.
    mutating func trim() -> Bool { evict(above: budget.share) }

    private mutating func evict(above limit: Int) -> Bool {
        guard heldBytes > limit else { return false }
        defer { budget.freed(to: heldBytes, in: identity.partition) }
        let (goal, share) = (limit / 4 * 3, limit / 2)
        for stream in streams.values where stream.heldBytes >= share {
            evict(from: stream, above: max(share, goal - (heldBytes - stream.heldBytes)))
        }
        let oldest = streams.values.filter(\.isIdle).sorted { $0.batch < $1.batch }
        for stream in oldest where heldBytes > goal && streams.count > 1 {
            heldBytes -= stream.heldBytes
            streams[stream.name] = nil
        }
        // Those that are left wait, or are the only one.
        for stream in streams.values where heldBytes > goal {
            evict(from: stream, above: goal - (heldBytes - stream.heldBytes))
        }
        return true
    }

    private mutating func evict(from stream: CachedStream, above bytes: Int) {
        heldBytes -= stream.heldBytes
        stream.evict(above: bytes)
        heldBytes += stream.heldBytes
    }
}
