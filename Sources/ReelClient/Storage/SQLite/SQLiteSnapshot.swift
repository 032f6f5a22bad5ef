internal import ReelCore

/// The content of an SQLite storage at one moment. It has a connection until it ends.
final class SQLiteSnapshot: StorageSnapshot {
    private let storage: SQLiteStorage
    private let reader: SQLiteReader

    /// Creates a snapshot with a reader that sees its moment.
    init(of storage: SQLiteStorage, _ reader: SQLiteReader) {
        self.storage = storage
        self.reader = reader
    }

    deinit { storage.giveBack(reader) }

    /// Returns the value of a key; nil if the key is absent.
    func value(for key: [UInt8]) throws(ReelError) -> [UInt8]? {
        try reading { () throws(ReelError) in try reader.value(for: key) }
    }

    /// Calls `body` with each pair in `start..<end`, in order, until it returns false.
    func forEach(
        from start: [UInt8],
        to end: [UInt8],
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool
    ) throws(ReelError) {
        var batch = PairBatch(from: start)
        try reading { () throws(ReelError) in try reader.read(into: &batch, to: end) }
        while try batch.forEach(body), !batch.hasRoom {
            batch.advance()
            try reading { () throws(ReelError) in try reader.read(into: &batch, to: end) }
        }
    }

    /// Throws `store_lost` instead of a failure to read if the files are not at their place.
    private func reading<T>(_ body: () throws(ReelError) -> T) throws(ReelError) -> T {
        do throws(ReelError) {
            return try body()
        } catch {
            if error.code != .closed { try storage.checkFiles() }
            throw error
        }
    }
}
