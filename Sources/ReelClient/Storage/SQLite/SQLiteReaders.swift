internal import ReelCore
internal import Synchronization

/// The connections of a storage's snapshots. A few idle ones are kept.
final class SQLiteReaders: Sendable {
    /// The largest number of idle connections.
    private static let idleMax = 8

    private struct Connections {
        var idle: [SQLiteReader] = []
        var used: [ObjectIdentifier: SQLiteReader] = [:]
    }

    private let files: StorageFiles
    /// Nil after `close`.
    private let connections = Mutex<Connections?>(Connections())

    /// Creates an empty pool for files that are open.
    init(_ files: StorageFiles) { self.files = files }

    /// Returns a reader that sees the present moment.
    func take() throws(ReelError) -> SQLiteReader {
        let reader = if let idle = try idle() { idle } else { try opened() }
        do throws(ReelError) {
            try reader.pin()
            return reader
        } catch {
            drop(reader)
            throw error
        }
    }

    /// Takes back the reader of a snapshot that has ended.
    func giveBack(_ reader: SQLiteReader) {
        guard reader.unpin() else { return drop(reader) }
        let isKept = connections.withLock { connections in
            connections?.used[ObjectIdentifier(reader)] = nil
            guard let count = connections?.idle.count, count < Self.idleMax else { return false }
            connections?.idle.append(reader)
            return true
        }
        if !isKept { reader.close() }
    }

    /// Ends all connections, also those of snapshots that are still held.
    func close() {
        let readers = connections.withLock { connections -> [SQLiteReader] in
            defer { connections = nil }
            return connections.map { $0.idle + $0.used.values } ?? []
        }
        for reader in readers { reader.close() }
    }

    private func idle() throws(ReelError) -> SQLiteReader? {
        try connections.withLock { connections throws(ReelError) in
            guard connections != nil else { throw .closedStorage }
            guard let reader = connections?.idle.popLast() else { return nil }
            connections?.used[ObjectIdentifier(reader)] = reader
            return reader
        }
    }

    private func opened() throws(ReelError) -> SQLiteReader {
        // SQLite opens the file by its name. A file that has replaced this one must not be read.
        try files.checkIdentity()
        let reader = try SQLiteReader(path: files.path)
        try files.checkIdentity()
        try connections.withLock { connections throws(ReelError) in
            guard connections != nil else { throw .closedStorage }
            connections?.used[ObjectIdentifier(reader)] = reader
        }
        return reader
    }

    private func drop(_ reader: SQLiteReader) {
        reader.close()
        connections.withLock { _ = $0?.used.removeValue(forKey: ObjectIdentifier(reader)) }
    }
}
