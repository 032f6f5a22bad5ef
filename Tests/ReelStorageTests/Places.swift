import Foundation
import OwnStorage
import ReelClient
import ReelStorageConformance
import Synchronization

/// A folder for the files of one test.
final class Folder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("reel-storage-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a new file in the folder.
    var freshPath: String { path + "/" + UUID().uuidString }

    /// The names of the files in the folder.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}

extension StorageConformance {
    /// The suite for a storage in memory.
    static let memory = StorageConformance(name: "MemoryStorage", make: { MemoryStorage() })

    /// The suite for a storage in an SQLite file. A crash is a copy of the files.
    static func sqlite(in folder: Folder) -> StorageConformance {
        StorageConformance(
            name: "SQLiteStorage",
            make: { try SQLiteStorage(path: folder.freshPath) },
            reopen: { try SQLiteStorage(path: ($0 as! SQLiteStorage).path) },
            crash: { storage in
                let copy = folder.freshPath
                for ending in ["", "-wal"] {
                    try FileManager.default.copyItem(
                        atPath: (storage as! SQLiteStorage).path + ending,
                        toPath: copy + ending
                    )
                }
                return try SQLiteStorage(path: copy)
            }
        )
    }

    /// The suite for the storage of the example. A crash is a copy of the file with a torn record.
    static func own(in folder: Folder) -> StorageConformance {
        StorageConformance(
            name: "OwnStorage",
            make: { try OwnStorage(path: folder.freshPath) },
            reopen: { try OwnStorage(path: ($0 as! OwnStorage).path) },
            crash: { storage in
                let copy = folder.freshPath
                let data = try Data(contentsOf: URL(filePath: (storage as! OwnStorage).path))
                try (data + Data([9, 0, 0, 0, 1, 2, 3])).write(to: URL(filePath: copy))
                return try OwnStorage(path: copy)
            }
        )
    }
}

extension SQLiteStorage {
    /// Puts one key durably.
    func put(_ key: String) throws { try commit(.puts([key], [1]), durably: true) }

    /// Puts many keys in one commit that is not durable.
    func put(_ keys: [String], value: [UInt8]) throws { try commit(.puts(keys, value), durably: false) }

    /// All keys as text.
    var keys: [String] {
        get throws {
            var keys: [String] = []
            try snapshot().forEach(from: [], to: [0xFF]) { key, _ in
                keys.append(String(decoding: key, as: UTF8.self))
                return true
            }
            return keys
        }
    }
}

extension StorageChanges {
    /// Changes that put one value at many keys.
    static func puts(_ keys: [String], _ value: [UInt8]) -> StorageChanges {
        var changes = StorageChanges()
        for key in keys { changes.put(Array(key.utf8), value) }
        return changes
    }
}
