public import ReelClient
public import ReelCore
internal import Synchronization

/// An app's own storage. The whole content is in memory, and each commit is a record at the end of one file.
///
/// A start reads the file and applies its records. An incomplete record has a wrong checksum. It can only be one of the
/// last records, so the file is cut there. When the file has become twice as large, the storage writes the content to a
/// new file. The new file replaces the old one.
public final class OwnStorage: DeviceStorage {
    /// The smallest file in bytes that is compacted.
    private static let compactedMin = 1 << 20

    private enum State {
        /// The file, and its size after the last compaction.
        case open(RecordFile, compacted: Int)
        /// A write failed. The content can still be read.
        case failed(ReelError)
        case closed
    }

    /// The path of the file.
    public let path: String
    private let memory = MemoryStorage()
    private let state: Mutex<State>

    /// Opens the file, or creates it. Throws `store_busy` if another client has it open.
    public init(path: String) throws(ReelError) {
        self.path = path
        let file = try RecordFile(path: path)
        let memory = memory
        try file.readAll { record throws(ReelError) in
            guard let changes = StorageChanges(record: record) else { return false }
            try memory.commit(changes, durably: false)
            return true
        }
        state = Mutex(.open(file, compacted: file.size))
    }

    /// Returns the content at this moment.
    public func snapshot() throws(ReelError) -> any StorageSnapshot { try memory.snapshot() }

    /// Writes the changes as one record, and applies them once it is written.
    public func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            switch state {
            case .open(let file, let compacted):
                do throws(ReelError) {
                    try file.append(changes.record, durably: durably)
                } catch {
                    state = .failed(error)
                    throw error
                }
                try memory.commit(changes, durably: durably)
                guard file.size > Self.compactedMin, file.size / 2 > compacted else { return }
                // If the file cannot be replaced, this commit is still safe in it, but later ones may not be.
                do throws(ReelError) {
                    let small = try compact()
                    state = .open(small, compacted: small.size)
                } catch { state = .failed(error) }
            case .failed(let error): throw error
            case .closed: throw ReelError(.closed, "the storage at \(path) is closed")
            }
        }
    }

    /// Closes the storage.
    public func close() {
        state.withLock { $0 = .closed }
        memory.close()
    }

    /// Deletes the file and closes the storage.
    public func erase() throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            if case .closed = state { throw ReelError(.closed, "the storage at \(path) is closed") }
            defer { state = .closed }
            memory.close()
            for path in [path + "-new", path] { try RecordFile.remove(path) }
        }
    }

    /// Writes the content to a new file, which replaces the old one.
    private func compact() throws(ReelError) -> RecordFile {
        try RecordFile.remove(path + "-new")
        let small = try RecordFile(path: path + "-new")
        try small.readAll { _ in false }
        var changes = StorageChanges()
        // Every key of a client comes before 1,024 such bytes.
        let end = [UInt8](repeating: 0xFF, count: 1_024)
        try memory.snapshot().forEach(from: [], to: end) { key, value throws(ReelError) in
            changes.put(Array(key), Array(value))
            return true
        }
        try small.append(changes.record, durably: true)
        try small.takePlace(of: path)
        return small
    }
}

extension StorageChanges {
    /// The changes as bytes. Each change is a letter and two parts with their sizes.
    fileprivate var record: [UInt8] {
        var record: [UInt8] = []
        func add(_ letter: Unicode.Scalar, _ parts: [UInt8]...) {
            record.append(UInt8(ascii: letter))
            for part in parts {
                withUnsafeBytes(of: UInt32(truncatingIfNeeded: part.count).littleEndian) { record += $0 }
                record += part
            }
        }
        for change in changes {
            switch change {
            case .put(let key, let value): add("p", key, value)
            case .remove(let key): add("r", key, [])
            case .removeRange(let start, let end): add("x", start, end)
            }
        }
        return record
    }

    /// Reads changes from bytes; nil if the bytes are invalid.
    fileprivate init?(record: [UInt8]) {
        self.init()
        var rest = record[...]
        func part() -> [UInt8]? {
            guard rest.count >= 4 else { return nil }
            let size = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= size else { return nil }
            defer { rest = rest.dropFirst(size) }
            return Array(rest.prefix(size))
        }
        while let letter = rest.popFirst() {
            guard let first = part(), let second = part() else { return nil }
            switch letter {
            case UInt8(ascii: "p"): put(first, second)
            case UInt8(ascii: "r"): remove(first)
            case UInt8(ascii: "x"): removeRange(from: first, to: second)
            default: return nil
            }
        }
    }
}
