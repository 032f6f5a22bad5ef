import ReelCore
import Synchronization

@testable import ClientTestSupport
@testable import ReelClient

/// A storage whose process is killed after some commits: what was committed stays, and nothing comes after it.
final class StoppingStorage: DeviceStorage {
    static let killed = ReelError(.storeFailed, "killed")

    private let storage: any DeviceStorage
    private let left = Mutex(Int.max)
    private let made = Mutex(0)

    init(_ storage: any DeviceStorage) {
        self.storage = storage
    }

    /// The number of commits so far.
    var commits: Int { made.withLock { $0 } }

    /// True if the process was killed.
    var isOver: Bool { left.withLock { $0 < 0 } }

    /// Ends the storage, as a kill of the process does, at the commit that follows `count` others.
    func stop(after count: Int) { left.withLock { $0 = count } }

    func snapshot() throws(ReelError) -> any StorageSnapshot { try storage.snapshot() }

    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try count()
        try storage.commit(changes, durably: durably)
    }

    /// The end of a process closes nothing.
    func close() {}

    func erase() throws(ReelError) {
        try count()
        try storage.commit(StorageChanges(from: [], to: [.max]), durably: true)
    }

    private func count() throws(ReelError) {
        made.withLock { $0 += 1 }
        let isOver = left.withLock { left in
            left -= 1
            return left < 0
        }
        if isOver { throw Self.killed }
    }
}

extension StorageChanges {
    /// The removal of all keys of a range.
    init(from start: [UInt8], to end: [UInt8]) {
        self.init()
        removeRange(from: start, to: end)
    }
}

extension DeviceStorage {
    /// The keys whose first byte is one of these letters.
    func keys(_ kinds: String) throws -> [[UInt8]] {
        let snapshot = try snapshot()
        var keys: [[UInt8]] = []
        for kind in kinds.utf8 {
            try snapshot.forEach(from: [kind], to: [kind + 1]) { (key, _) throws(ReelError) in
                keys.append(Array(key))
                return true
            }
        }
        return keys
    }

    /// A storage in memory with the same content.
    func copy() throws -> MemoryStorage {
        var changes = StorageChanges()
        try snapshot().forEach(from: [], to: [.max]) { (key, value) throws(ReelError) in
            changes.put(Array(key), Array(value))
            return true
        }
        let copy = MemoryStorage()
        try copy.commit(changes, durably: true)
        return copy
    }
}

extension SyncClient {
    /// True if no upkeep of the store is to be done.
    var isTidy: Bool { upkeepTimer == nil }
}

extension FakeNetwork {
    /// Returns a network whose stream `s` has `count` objects, each with a number `n` and a text `t`.
    static func with(objects count: Int) async throws -> FakeNetwork {
        let network = try FakeNetwork()
        try await network.on { network in
            let text = JSONValue.string(String(repeating: "text ", count: 20))
            for id in 0..<count { network.author(.insert("m", id: "\(id)", ["n": 1, "t": text])) }
        }
        return network
    }
}
