import Foundation
import ReelClient
import ReelCore
import Synchronization

/// A storage with one fault, for tests of the suite that must find it.
final class FaultyStorage: DeviceStorage {
    /// A fault that a storage can have.
    enum Fault: String, CaseIterable, Sendable {
        case losesAWrite, losesTheEmptyValue, cutsLargeValues, forgetsTheLastKeyByte
        case tearsACommit, throwsInTheMiddle, appliesRemovesLast, keepsTheFirstPut
        case swallowsRemoveRange, removeRangeTakesItsEnd, removeRangeClearsAll
        case laterStateInASnapshot, snapshotBeginsAtItsFirstRead, snapshotOfAnEarlierCommit
        case signedOrder, longestKeyLast, rangeHoldsItsEnd, rangeLeavesOutItsStart, ignoresTheBodysFalse
        case swallowsTheBodysError, losesAConcurrentCommit
        case snapshotWaitsForACommit, commitStalls, forEachStalls, closeStalls
        case worksAfterClose, otherErrorAfterClose, eraseThrows, worksAfterErase
        case forgetsAtClose, forgetsTheLastCommitAtClose, keepsWhatWasErased, staysLockedAfterClose
        case losesADurableCommitInACrash, keepsACommitAfterALostOne
    }

    let fault: Fault
    /// The content. It outlives this storage, so that a test can open it again.
    let memory: MemoryStorage
    private let state = Mutex(State())
    private let committing = Mutex(())

    private struct State {
        var commits = 0
        var isClosed = false
        var previous: (any StorageSnapshot)?
        var log: [StorageChanges] = []
    }

    init(_ fault: Fault, memory: MemoryStorage = MemoryStorage()) {
        self.fault = fault
        self.memory = memory
    }

    func snapshot() throws(ReelError) -> any StorageSnapshot {
        try checkOpen()
        switch fault {
        case .snapshotWaitsForACommit: committing.withLock { _ in }
        case .snapshotOfAnEarlierCommit:
            if let previous = state.withLock({ $0.previous }) { return previous }
        default: break
        }
        return FaultySnapshot(fault, memory, try memory.snapshot())
    }

    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try checkOpen()
        if fault == .losesAConcurrentCommit {
            // A concurrent commit makes this durable commit skip its wait.
            guard committing.withLockIfAvailable({ _ in }) != nil else { return }
        }
        let number = state.withLock { state in
            state.commits += 1
            return state.commits
        }
        let before = try memory.snapshot()
        let faulty = try committing.withLock { _ throws(ReelError) in
            let faulty = self.faulty(changes, number)
            switch fault {
            // This pause is long enough for a commit of another thread.
            case .losesAConcurrentCommit:
                usleep(1_000)
                try memory.commit(faulty, durably: durably)
            case .commitStalls where number == 3: stall()
            case .tearsACommit:
                for change in faulty.changes { try memory.commit(StorageChanges(change), durably: durably) }
            case .throwsInTheMiddle where number == 5:
                for change in faulty.changes.prefix(1) { try memory.commit(StorageChanges(change), durably: durably) }
                throw ReelError(.storeFailed, "the middle")
            default: try memory.commit(faulty, durably: durably)
            }
            return faulty
        }
        state.withLock { state in
            state.previous = before
            state.log.append(faulty)
        }
    }

    func close() {
        if fault == .closeStalls { stall() }
        state.withLock { $0.isClosed = true }
    }

    func erase() throws(ReelError) {
        if fault == .eraseThrows { throw ReelError(.storeFailed, "no erase") }
        try checkOpen()
        if fault != .worksAfterErase { close() }
        guard fault != .keepsWhatWasErased else { return }
        var all = StorageChanges()
        all.removeRange(from: [], to: [UInt8](repeating: 0xFF, count: 99))
        try memory.commit(all, durably: true)
    }

    /// Opens the same content again.
    func reopened() throws -> FaultyStorage {
        switch fault {
        case .forgetsAtClose: return FaultyStorage(fault)
        case .staysLockedAfterClose: throw ReelError(.storeBusy, "the storage is open")
        case .forgetsTheLastCommitAtClose: return try replayed(state.withLock { $0.log.dropLast() })
        default: return FaultyStorage(fault, memory: memory)
        }
    }

    /// Returns a storage with the content that is left after a crash.
    func crashed() throws -> FaultyStorage {
        let log = state.withLock { $0.log }
        switch fault {
        case .losesADurableCommitInACrash: return try replayed(log.dropLast(9))
        case .keepsACommitAfterALostOne: return try replayed(log.dropLast(2) + log.suffix(1))
        default: return FaultyStorage(fault, memory: memory)
        }
    }

    private func replayed(_ log: some Sequence<StorageChanges>) throws -> FaultyStorage {
        let memory = MemoryStorage()
        for changes in log { try memory.commit(changes, durably: true) }
        return FaultyStorage(fault, memory: memory)
    }

    private func checkOpen() throws(ReelError) {
        guard fault != .worksAfterClose, state.withLock({ $0.isClosed }) else { return }
        throw ReelError(fault == .otherErrorAfterClose ? .internal : .closed, "the storage is closed")
    }

    /// Returns the changes that this storage applies in place of the given changes.
    private func faulty(_ changes: StorageChanges, _ number: Int) -> StorageChanges {
        var result = StorageChanges()
        var put: Set<[UInt8]> = []
        for change in fault == .appliesRemovesLast ? changes.removesLast : changes.changes {
            switch (change, fault) {
            case (.put, .losesAWrite) where number == 7: continue
            case (.put(_, []), .losesTheEmptyValue): continue
            case (.put(let key, let value), .cutsLargeValues): result.put(key, Array(value.prefix(1_000_000)))
            case (.put(let key, let value), .forgetsTheLastKeyByte) where key.count > 250:
                result.put(Array(key.prefix(250)), value)
            case (.put(let key, _), .keepsTheFirstPut) where !put.insert(key).inserted: continue
            case (.removeRange, .swallowsRemoveRange): continue
            case (.removeRange(let start, let end), .removeRangeTakesItsEnd):
                result.removeRange(from: start, to: end + [0])
            case (.removeRange, .removeRangeClearsAll):
                result.removeRange(from: [], to: [UInt8](repeating: 0xFF, count: 99))
            default: result.add(change)
            }
        }
        return result
    }
}

/// A snapshot with the fault of its storage.
private final class FaultySnapshot: StorageSnapshot {
    private let fault: FaultyStorage.Fault
    private let memory: MemoryStorage
    private let made: any StorageSnapshot
    private let first = Mutex<(any StorageSnapshot)?>(nil)

    init(_ fault: FaultyStorage.Fault, _ memory: MemoryStorage, _ made: any StorageSnapshot) {
        self.fault = fault
        self.memory = memory
        self.made = made
    }

    func value(for key: [UInt8]) throws(ReelError) -> [UInt8]? { try read().value(for: key) }

    func forEach(
        from start: [UInt8],
        to end: [UInt8],
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool
    ) throws(ReelError) {
        if fault == .forEachStalls { stall() }
        var pairs: [(key: [UInt8], value: [UInt8])] = []
        try read().forEach(from: start, to: fault == .rangeHoldsItsEnd ? end + [0] : end) {
            key,
            value throws(ReelError) in
            pairs.append((Array(key), Array(value)))
            return true
        }
        switch fault {
        case .signedOrder: pairs.sort { $0.key.signed.lexicographicallyPrecedes($1.key.signed) }
        case .longestKeyLast: pairs.sort { $0.key.count < $1.key.count }
        case .rangeLeavesOutItsStart: pairs.removeAll { $0.key == start }
        default: break
        }
        for pair in pairs {
            do {
                let goesOn = try pair.key.withUnsafeBytes { key in try pair.value.withUnsafeBytes { try body(key, $0) }
                }
                guard goesOn || fault == .ignoresTheBodysFalse else { return }
            } catch {
                guard fault != .swallowsTheBodysError else { return }
                throw error as? ReelError ?? ReelError(.internal, "\(error)")
            }
        }
    }

    private func read() throws(ReelError) -> any StorageSnapshot {
        switch fault {
        case .laterStateInASnapshot: return try memory.snapshot()
        case .snapshotBeginsAtItsFirstRead:
            let now = try memory.snapshot()
            return first.withLock { first in
                first = first ?? now
                return first ?? now
            }
        default: return made
        }
    }
}

/// Blocks until the process ends.
private func stall() {
    while true { sleep(1_000) }
}

extension [UInt8] {
    fileprivate var signed: [Int8] { map { Int8(bitPattern: $0) } }
}

extension StorageChanges {
    /// The changes, with all removes after the puts.
    fileprivate var removesLast: [Change] {
        changes.filter { if case .put = $0 { true } else { false } }
            + changes.filter { if case .put = $0 { false } else { true } }
    }

    fileprivate init(_ change: Change) {
        self.init()
        add(change)
    }

    fileprivate mutating func add(_ change: Change) {
        switch change {
        case .put(let key, let value): put(key, value)
        case .remove(let key): remove(key)
        case .removeRange(let start, let end): removeRange(from: start, to: end)
        }
    }
}
