public import ReelCore

/// A durable, ordered map of byte keys to byte values, in which a client keeps what its device holds. Safe on any
/// thread.
///
/// Keys are ordered by their bytes: unsigned, and a key comes before all longer keys that begin with it. Keys and
/// values may be empty. After `close`, `commit`, `snapshot` and `erase` throw `closed`.
///
/// `SQLiteStorage` keeps the map in a file, `MemoryStorage` keeps it in memory. An app can bring a storage of its own:
/// the module `ReelStorageConformance` checks it, and `Examples/OwnStorage` is an example.
public protocol DeviceStorage: AnyObject, Sendable {
    /// Returns the content at this moment. Later commits do not change it. Never waits for a commit.
    func snapshot() throws(ReelError) -> any StorageSnapshot

    /// Applies all changes in order, or none.
    ///
    /// A commit that has returned is in every later snapshot. After a power failure the storage holds the first
    /// commits up to some commit, without a gap.
    ///
    /// - Parameters:
    ///   - changes: The changes. A later one sees the result of the earlier ones.
    ///   - durably: True to return only when this commit and all earlier ones survive a power failure. Otherwise the
    ///     commit may be lost together with all later commits, but never alone.
    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError)

    /// Ends the use. Snapshots that are still held stay readable or throw `closed`. A second call has no effect.
    func close()

    /// Deletes everything, also the place (file) itself, and ends the use.
    func erase() throws(ReelError)
}

/// The content of a storage at one moment. Safe on any thread. The storage keeps old data for it, so release it soon.
public protocol StorageSnapshot: AnyObject, Sendable {
    /// Returns the value of a key; nil if the key is absent.
    func value(for key: [UInt8]) throws(ReelError) -> [UInt8]?

    /// Calls `body` with each pair whose key is in `start..<end`, in ascending order of bytes, until `body` returns
    /// false.
    ///
    /// The pointers are valid during the call of `body`. `body` may use this snapshot, other snapshots and the storage.
    ///
    /// - Parameters:
    ///   - start: the first key of the range, which need not exist.
    ///   - end: the key before which the range ends.
    ///   - body: gets a key and its value. It returns false to end the iteration.
    /// - Throws: The error of `body`, which ends the iteration. `closed` after `close`, if the storage does not keep
    ///   the snapshot readable. A code that begins with `store_` if reading fails.
    func forEach(
        from start: [UInt8],
        to end: [UInt8],
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(ReelError) -> Bool
    ) throws(ReelError)
}
