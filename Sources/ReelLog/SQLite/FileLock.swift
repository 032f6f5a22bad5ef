internal import CLinux
internal import Glibc
internal import ReelCore
internal import Synchronization

/// The lock file next to a log's file, shared by all processes that use the log. It has two purposes:
///
/// - A `flock` on it serialises the processes.
/// - It lets a writer wake the readers of other processes. The writer reads the file's first byte, which changes
///   nothing on the disk, and readers receive the access by inotify. A listener holds a shared lock on that byte, so a
///   writer without listeners skips the read.
final class FileLock: Sendable {
    private let descriptor: Int32
    let path: String
    private let report: LockWaitReport
    private let wait = Mutex(Wait())

    /// The state of this user's wait for the lock.
    private struct Wait {
        /// When the wait began; nil: no wait.
        var since: ContinuousClock.Instant?
        var isReported = false
        /// True while a thread watches the wait.
        var isWatched = false
    }

    /// Opens the lock file, or creates it. `report` is called with long waits.
    init(path: String, report: @escaping LockWaitReport = { _ in }) throws(LogError) {
        self.path = path
        self.report = report
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw LogError(errno: errno, "open \(path)") }
        // Earlier builds created the file so that any user of the machine could lock it.
        var file = stat()
        if fstat(descriptor, &file) == 0, file.st_mode & 0o777 == 0o644 { fchmod(descriptor, 0o600) }
        var byte: UInt8 = 10
        // A file system without locks fails here and not at each commit.
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno == EWOULDBLOCK else {
            throw LogError(errno: errno, "lock \(path)")
        }
        flock(descriptor, LOCK_UN)
        guard lseek(descriptor, 0, SEEK_END) > 0 || pwrite(descriptor, &byte, 1, 0) == 1 else {
            throw LogError(errno: errno, "write \(path)")
        }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Calls `body` while the lock is held: against other processes, and against other users of the file in this one.
    func whileHeld<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 { waitForLock() }
        defer { flock(descriptor, LOCK_UN) }
        return try body()
    }

    /// Waits for the lock. `flock` has no timeout, so a thread reports a long wait.
    private func waitForLock() {
        let needsWatch = wait.withLock { wait in
            wait.since = .now
            defer { wait.isWatched = true }
            return !wait.isWatched
        }
        if needsWatch, (try? LogThread.detach("lock-watch") { [self] in watch() }) == nil {
            wait.withLock { $0.isWatched = false }
        }
        while flock(descriptor, LOCK_EX) != 0 {
            // The kernel may lack room for the lock. Nothing is written without it.
            if errno != EINTR { usleep(Self.retryMicros) }
        }
        let reported = wait.withLock { wait in
            defer { (wait.since, wait.isReported) = (nil, false) }
            return wait.isReported ? wait.since : nil
        }
        if let reported { report(LockWait(file: path, waited: ContinuousClock.now - reported, isOver: true)) }
    }

    /// Watches the wait until it has ended, and reports it once it is long.
    private func watch() {
        let shortest = LockWait.reported
        var isWaiting = true
        while isWaiting {
            usleep(Self.watchMicros)
            let long: Duration?
            (isWaiting, long) = wait.withLock { wait in
                guard let since = wait.since else {
                    wait.isWatched = false
                    return (false, nil)
                }
                let waited = ContinuousClock.now - since
                guard waited >= shortest, !wait.isReported else { return (true, nil) }
                wait.isReported = true
                return (true, waited)
            }
            if let long { report(LockWait(file: path, waited: long, isOver: false)) }
        }
    }

    private static let watchMicros: UInt32 = 100_000
    private static let retryMicros: UInt32 = 10_000

    /// Calls `body` with the lock held, as `whileHeld` does. Returns nil if another process holds the lock for the
    /// whole timeout.
    func whileHeld<R>(waitingAtMost time: Duration, _ body: () -> R) -> R? {
        let end = ContinuousClock.now + time
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR || ContinuousClock.now < end else { return nil }
            usleep(1_000)
        }
        defer { flock(descriptor, LOCK_UN) }
        return body()
    }

    /// How many times the log's file was closed, as last stored in this folder. Read and write it only with the lock
    /// held.
    var closings: Int64 {
        get {
            var bytes = [UInt8](repeating: 0, count: 20)
            let count = pread(descriptor, &bytes, bytes.count, 1)
            return count > 0 ? Int64(String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self)) ?? 0 : 0
        }
        set {
            let bytes = Array("\(newValue)\n".utf8)
            _ = pwrite(descriptor, bytes, bytes.count, 1)
            fsync(descriptor)
        }
    }

    /// True if another user of the file listens: another process, or another log in this one.
    var isListenedTo: Bool {
        var byte = Self.byte(F_WRLCK)
        return fcntl(descriptor, reel_open_file_getlk, &byte) != 0 || byte.l_type != Int16(F_UNLCK)
    }

    /// Ends `listen`: writers no longer count this user as a listener. Notifications for other listeners still arrive.
    func stopListening() {
        var byte = Self.byte(F_UNLCK)
        _ = fcntl(descriptor, reel_open_file_setlk, &byte)
    }

    /// Starts to receive notifications. They end when this lock and the returned watch are released.
    func listen() throws(LogError) -> CommitNotifications {
        let watch = try CommitNotifications(path)
        var byte = Self.byte(F_RDLCK)
        guard fcntl(descriptor, reel_open_file_setlk, &byte) == 0 else {
            throw LogError(errno: errno, "listen to \(path)")
        }
        return watch
    }

    /// Wakes the readers of other processes, and of other users of the file in this one. If there are any, this user's
    /// own listener is woken too. A listener that starts after the check finds what was committed before.
    func ring() {
        guard isListenedTo else { return }
        var read: UInt8 = 0
        _ = pread(descriptor, &read, 1, 0)
    }

    /// Returns the lock of the first byte. It belongs to the open file description, not to the process, so a user's own
    /// lock does not conflict with its other calls.
    private static func byte(_ kind: Int32) -> Glibc.flock {
        Glibc.flock(l_type: Int16(kind), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 1, l_pid: 0)
    }
}

/// Receives the notifications of a `FileLock`. The descriptor is readable after a notification.
final class CommitNotifications: Sendable {
    let descriptor: Int32

    fileprivate init(_ path: String) throws(LogError) {
        descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        guard descriptor >= 0 else { throw LogError(errno: errno, "watch \(path) by inotify") }
        guard inotify_add_watch(descriptor, path, UInt32(IN_ACCESS)) >= 0 else {
            throw LogError(errno: errno, "watch \(path) by inotify")
        }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Discards the notifications that have arrived.
    func silence() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
