internal import ReelClient
internal import ReelCore
internal import Synchronization

/// The store of a device, in memory. It outlives the processes of the device.
///
/// A kill loses nothing that a process has committed, as on a real device. The end of a process is simulated, and not a
/// power failure: a commit that need not be durable stays too.
final class DeviceMemory: Sendable {
    private struct State {
        var storage = MemoryStorage()
        /// The number of the process that has the store open; 0: none.
        var opener = 0
        var processes = 0
    }

    private let state = Mutex(State())

    /// True if a process has the store open.
    var isOpen: Bool { state.withLock { $0.opener != 0 } }

    /// Opens the store for the next process. An earlier process cannot use it any more.
    func open() -> any DeviceStorage {
        let process = state.withLock { state in
            state.processes += 1
            state.opener = state.processes
            return state.opener
        }
        return Opened(memory: self, process: process)
    }

    /// Ends the use of the store by the present process.
    func end() { state.withLock { $0.opener = 0 } }

    /// The store as one process has it.
    private final class Opened: DeviceStorage {
        private let memory: DeviceMemory
        private let process: Int

        init(memory: DeviceMemory, process: Int) { (self.memory, self.process) = (memory, process) }

        func snapshot() throws(ReelError) -> any StorageSnapshot {
            try withStorage { (state) throws(ReelError) in try state.storage.snapshot() }
        }

        func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
            try withStorage { (state) throws(ReelError) in try state.storage.commit(changes, durably: durably) }
        }

        func close() { try? withStorage { (state) throws(ReelError) in state.opener = 0 } }

        func erase() throws(ReelError) {
            try withStorage { (state) throws(ReelError) in
                (state.storage, state.opener) = (MemoryStorage(), 0)
            }
        }

        private func withStorage<T: Sendable>(
            _ body: (inout State) throws(ReelError) -> T
        ) throws(ReelError) -> T {
            try memory.state.withLock { state throws(ReelError) in
                guard state.opener == process else {
                    throw ReelError(.closed, "the process that had the device's store open has ended")
                }
                return try body(&state)
            }
        }
    }
}
