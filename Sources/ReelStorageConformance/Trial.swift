internal import ReelClient
internal import ReelCore
internal import Synchronization

/// The run of one check: makes the storages, and remembers which calls have not returned.
struct Trial: Sendable {
    let suite: StorageConformance
    let calls: RunningCalls

    /// Returns a probe on an empty storage at a fresh place.
    func make() throws -> Probe {
        Probe(try calls.during("make") { () throws in try suite.make() }, calls)
    }

    /// Opens the place of a storage that has ended.
    func reopen(_ probe: Probe) throws -> Probe {
        guard let reopen = suite.reopen else { throw Wrong("found no way to reopen the storage") }
        return Probe(try calls.during("reopen") { () throws in try reopen(probe.storage) }, calls)
    }

    /// Returns a probe on what a crash at this moment leaves.
    func crash(_ probe: Probe) throws -> Probe {
        guard let crash = suite.crash else { throw Wrong("found no way to crash the storage") }
        return Probe(try calls.during("crash") { () throws in try crash(probe.storage) }, calls)
    }
}

/// The reason why a check fails.
struct Wrong: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Throws the reason if the condition does not hold.
func expect(_ condition: Bool, _ reason: @autoclosure () -> String) throws {
    guard condition else { throw Wrong(reason()) }
}

/// The calls of a storage that have not returned yet.
final class RunningCalls: Sendable, CustomStringConvertible {
    private let running = Mutex<[String: Int]>([:])

    /// Runs a call of the storage.
    func during<R, E: Error>(_ name: String, _ call: () throws(E) -> R) throws(E) -> R {
        running.withLock { $0[name, default: 0] += 1 }
        defer { running.withLock { $0[name, default: 1] -= 1 } }
        return try call()
    }

    /// The names of the calls.
    var description: String {
        let names = running.withLock { $0.filter { $0.value > 0 }.keys.sorted() }
        return names.isEmpty ? "many calls (each returns, and the whole takes too long)" : names.joined(separator: ", ")
    }
}

/// A storage under test.
struct Probe: Sendable {
    let storage: any DeviceStorage
    let calls: RunningCalls

    init(_ storage: any DeviceStorage, _ calls: RunningCalls) {
        self.storage = storage
        self.calls = calls
    }

    /// Commits what `fill` adds.
    func commit(durably: Bool = false, _ fill: (inout StorageChanges) -> Void) throws {
        var changes = StorageChanges()
        fill(&changes)
        try commit(changes, durably: durably)
    }

    /// Commits the changes. An error is a fault, because nothing is wrong with the place.
    func commit(_ changes: StorageChanges, durably: Bool = false) throws {
        do throws(ReelError) {
            try calls.during("commit") { () throws(ReelError) in try storage.commit(changes, durably: durably) }
        } catch {
            throw Wrong("commit threw: \(error)")
        }
    }

    /// Returns a snapshot.
    func snapshot() throws -> View {
        do throws(ReelError) {
            return View(
                try calls.during("snapshot") { () throws(ReelError) in try storage.snapshot() },
                calls
            )
        } catch {
            throw Wrong("snapshot threw: \(error)")
        }
    }

    /// Ends the storage.
    func close() { calls.during("close") { storage.close() } }

    /// Deletes the storage.
    func erase() throws {
        do throws(ReelError) {
            try calls.during("erase") { () throws(ReelError) in try storage.erase() }
        } catch {
            throw Wrong("erase threw: \(error)")
        }
    }

    /// Throws if the storage does not have this content.
    func expect(_ model: Model, _ moment: String) throws { try snapshot().expect(model, moment) }
}

/// A snapshot under test.
struct View: Sendable {
    let snapshot: any StorageSnapshot
    private let calls: RunningCalls

    init(_ snapshot: any StorageSnapshot, _ calls: RunningCalls) {
        self.snapshot = snapshot
        self.calls = calls
    }

    /// Returns a value.
    func value(for key: [UInt8]) throws -> [UInt8]? {
        do throws(ReelError) {
            return try calls.during("value(for:)") { () throws(ReelError) in try snapshot.value(for: key) }
        } catch {
            throw Wrong("value(for: \(text(key))) threw: \(error)")
        }
    }

    /// Returns the pairs of a range, in the order in which they come.
    func pairs(from start: [UInt8], to end: [UInt8]) throws -> [Model.Pair] {
        var pairs: [Model.Pair] = []
        do throws(ReelError) {
            try calls.during("forEach") { () throws(ReelError) in
                try snapshot.forEach(from: start, to: end) { key, value throws(ReelError) in
                    pairs.append(Model.Pair(key: Array(key), value: Array(value)))
                    return true
                }
            }
        } catch {
            throw Wrong("forEach from \(text(start)) to \(text(end)) threw: \(error)")
        }
        return pairs
    }

    /// Throws if the snapshot does not have this content.
    func expect(_ model: Model, _ moment: String) throws {
        let expected = model.pairs
        try Model.compare(try pairs(from: [], to: Model.end), expected, moment)
        for pair in expected {
            let found = try value(for: pair.key)
            try Self.expect(found == pair.value, "value(for: \(text(pair.key)))", found, pair.value, moment)
        }
    }

    private static func expect(
        _ condition: Bool,
        _ call: String,
        _ found: [UInt8]?,
        _ expected: [UInt8],
        _ moment: String
    ) throws {
        guard !condition else { return }
        throw Wrong("\(moment): \(call) found \(found.map(text) ?? "nil"), expected \(text(expected))")
    }
}
