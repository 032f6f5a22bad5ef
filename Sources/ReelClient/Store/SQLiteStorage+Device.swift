internal import ReelCore

extension SQLiteStorage {
    /// Opens or creates the file of a device's store, and upgrades one of an earlier format.
    ///
    /// - Parameter path: the path of the file.
    /// - Throws: A code that begins with `store_` if the file cannot be used.
    convenience init(device path: String) throws(ReelError) {
        try self.init(path: path) { connection, format in try StoreUpgrade.pairs(of: connection, format: format) }
    }

    /// Opens the file of a device's store as `init(device:)` does. A file whose user has signed out is deleted first,
    /// if the process ended before that was done.
    static func open(device path: String) throws(ReelError) -> SQLiteStorage {
        let storage = try SQLiteStorage(device: path)
        guard try DeviceStore.isSignedOut(storage) else { return storage }
        try storage.erase()
        return try SQLiteStorage(device: path)
    }
}
