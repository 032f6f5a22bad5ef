public import ReelCore
internal import Synchronization

/// A storage in memory, for tests, previews, and apps that keep nothing on the device.
///
/// Everything is gone when the process ends, so `durably` makes no difference. Snapshots stay readable after `close`.
public final class MemoryStorage: DeviceStorage {
    private enum State {
        case open(SortedPairs)
        case closed
    }

    private let state: Mutex<State>
    /// Held during a commit, so that `state` is only locked to publish its result.
    private let committing = Mutex(())

    /// Creates an empty storage.
    public init() { state = Mutex(.open(SortedPairs())) }

    /// Returns the content at this moment, without a copy.
    public func snapshot() throws(ReelError) -> any StorageSnapshot { MemorySnapshot(try pairs()) }

    /// Applies all changes.
    public func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try committing.withLock { _ throws(ReelError) in
            var pairs = try pairs()
            for change in changes.changes { pairs.apply(change) }
            try publish(pairs)
        }
    }

    /// Ends the use and drops the content.
    public func close() { state.withLock { $0 = .closed } }

    /// Drops the content and ends the use.
    public func erase() throws(ReelError) {
        _ = try pairs()
        close()
    }

    private func pairs() throws(ReelError) -> SortedPairs {
        try state.withLock { state throws(ReelError) in
            guard case .open(let pairs) = state else { throw .closedStorage }
            return pairs
        }
    }

    private func publish(_ pairs: SortedPairs) throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            guard case .open = state else { throw .closedStorage }
            state = .open(pairs)
        }
    }
}

/// The content of a storage in memory at one moment.
private final class MemorySnapshot: StorageSnapshot {
    private let pairs: SortedPairs

    init(_ pairs: SortedPairs) { self.pairs = pairs }

    func value(for key: [UInt8]) throws(ReelError) -> [UInt8]? { pairs.value(for: key) }

    func forEach(
        from start: [UInt8],
        to end: [UInt8],
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool
    ) throws(ReelError) {
        try pairs.forEach(from: start, to: end, body)
    }
}

extension ReelError {
    /// The error for the use of a storage after its end.
    static var closedStorage: ReelError { ReelError(.closed, "the device's storage is closed") }
}
