import CSQLite
import Glibc

/// The system calls with which SQLite changes files. One of them fails or ends the process.
///
/// SQLite lets a program replace its system calls by name. A process makes them on one thread at a time, so plain
/// variables count them.
package enum FailingCalls {
    /// A fault at a call.
    package enum Fault: String {
        /// The process is killed before the call.
        case kill
        /// The process is killed after half of a write.
        case tear
        /// The disk is full for twenty writes.
        case full
        /// The disk fails for twenty writes.
        case fail
    }

    private enum Outcome {
        case works
        case error(Int32)
        case tears
    }

    private nonisolated(unsafe) static var fault = Fault.kill
    private nonisolated(unsafe) static var callsBefore = Int.max
    /// The number of calls since `install`.
    package private(set) nonisolated(unsafe) static var count = 0

    /// Replaces the system calls of SQLite.
    ///
    /// - Parameters:
    ///   - fault: what happens at the call.
    ///   - call: the number of calls that work before it.
    package static func install(_ fault: Fault, at call: Int) {
        (Self.fault, callsBefore) = (fault, call)
        let pwriteCall: @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int = {
            descriptor,
            bytes,
            count,
            offset in
            switch FailingCalls.next() {
            case .works: return pwrite(descriptor, bytes, count, offset)
            case .error(let code): return FailingCalls.failed(code)
            case .tears:
                _ = pwrite(descriptor, bytes, count / 2, offset)
                return FailingCalls.end()
            }
        }
        let writeCall: @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int = { descriptor, bytes, count in
            switch FailingCalls.next() {
            case .works: return write(descriptor, bytes, count)
            case .error(let code): return FailingCalls.failed(code)
            case .tears:
                _ = write(descriptor, bytes, count / 2)
                return FailingCalls.end()
            }
        }
        let truncateCall: @convention(c) (Int32, off_t) -> Int32 = { descriptor, size in
            FailingCalls.ifWhole { ftruncate(descriptor, size) }
        }
        let unlinkCall: @convention(c) (UnsafePointer<CChar>?) -> Int32 = { path in
            FailingCalls.ifWhole { path.map { unlinkat(AT_FDCWD, $0, 0) } ?? -1 }
        }
        replace("pwrite", unsafeBitCast(pwriteCall, to: sqlite3_syscall_ptr.self))
        replace("pwrite64", unsafeBitCast(pwriteCall, to: sqlite3_syscall_ptr.self))
        replace("write", unsafeBitCast(writeCall, to: sqlite3_syscall_ptr.self))
        replace("ftruncate", unsafeBitCast(truncateCall, to: sqlite3_syscall_ptr.self))
        replace("unlink", unsafeBitCast(unlinkCall, to: sqlite3_syscall_ptr.self))
    }

    /// Makes a call that cannot be torn. The process is killed before it, if that is due.
    package static func ifWhole(_ call: () -> Int32) -> Int32 {
        if case .tears = next() { _ = end() }
        return call()
    }

    private static func replace(_ name: String, _ call: sqlite3_syscall_ptr) {
        let vfs = sqlite3_vfs_find("unix")
        // A build of SQLite has only some of these calls.
        guard vfs?.pointee.xGetSystemCall(vfs, name) != nil else { return }
        guard vfs?.pointee.xSetSystemCall(vfs, name, call) == SQLITE_OK else { exit(3) }
    }

    private static func next() -> Outcome {
        count += 1
        callsBefore -= 1
        guard callsBefore < 0 else { return .works }
        switch fault {
        case .kill:
            _ = end()
            return .works
        case .tear: return .tears
        case .full: return callsBefore >= -20 ? .error(ENOSPC) : .works
        case .fail: return callsBefore >= -20 ? .error(EIO) : .works
        }
    }

    private static func failed(_ code: Int32) -> Int {
        errno = code
        return -1
    }

    private static func end() -> Int {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}
