internal import ReelCore
internal import ReelSQLite
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The lock on a storage: a `flock` on a file beside it, against other processes and other clients of this one.
///
/// The database file itself is never opened for that. Closing a descriptor of it would release the locks that SQLite
/// holds on it. The lock file is removed with the lock.
final class StorageLock: Sendable {
    private enum State {
        case held(descriptor: Int32)
        case released
    }

    private let path: String
    private let state: Mutex<State>

    /// Takes the lock. Throws `store_busy` if another client has it, and `store_failed` if it cannot be taken.
    init(_ path: String) throws(ReelError) {
        self.path = path
        while true {
            let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard opened >= 0 else { throw Self.failed("open", path) }
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                let error = errno == EWOULDBLOCK ? Self.busy(path) : Self.failed("lock", path)
                close(opened)
                throw error
            }
            // The former holder may have removed the file after this process has opened it.
            if Self.isSame(opened, path) {
                state = Mutex(.held(descriptor: opened))
                return
            }
            close(opened)
        }
    }

    deinit { release() }

    /// Releases the lock and removes its file. A second call has no effect.
    func release() {
        state.withLock { state in
            guard case .held(let descriptor) = state else { return }
            // Only the holder removes the file, so it is still the one that was locked.
            if Self.isSame(descriptor, path) { unlink(path) }
            // A process that is being started by this one has a copy of the descriptor until its program begins.
            flock(descriptor, LOCK_UN)
            close(descriptor)
            state = .released
        }
    }

    private static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
        guard let look = FileLook(path), let opened = FileLook(descriptor: descriptor) else { return false }
        return look.identity == opened.identity
    }

    private static func busy(_ path: String) -> ReelError {
        ReelError(
            .storeBusy,
            "the device's storage: another process, or another client of this one, has it open (found the lock of"
                + " \(path) taken)"
        )
    }

    private static func failed(_ call: String, _ path: String) -> ReelError {
        ReelError(.storeFailed, "the device's storage: \(call) \(path): \(String(cString: strerror(errno)))")
    }
}
