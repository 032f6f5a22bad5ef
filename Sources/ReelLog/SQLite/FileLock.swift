internal import CLinux
internal import Glibc
internal import ReelCore
internal import Synchronization

/// The file beside a log's file that its processes meet at: they take turns by a `flock` on it, and it is the bell by
/// which a writer wakes the readers of other processes. A bell is rung by reading its one byte, which changes nothing
/// on the disk, and heard by inotify. Who listens says so by a shared lock on that byte: nobody rings for nobody.
final class FileLock: Sendable {
    private let descriptor: Int32
    let path: String
    private let report: LockWaitReport
    private let wait = Mutex(Wait())

    /// The wait of this user for the lock.
    private struct Wait {
        /// Nil: no process waits.
        var since: ContinuousClock.Instant?
        var isReported = false
        /// A thread looks how long it takes.
        var isWatched = false
    }

    /// `report` is told of long waits.
    init(path: String, report: @escaping LockWaitReport = { _ in }) throws(LogError) {
        self.path = path
        self.report = report
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw LogError(errno: errno, "open \(path)") }
        // A file of an earlier build, which any user of the machine could lock.
        var file = stat()
        if fstat(descriptor, &file) == 0, file.st_mode & 0o777 == 0o644 { fchmod(descriptor, 0o600) }
        var byte: UInt8 = 10
        guard lseek(descriptor, 0, SEEK_END) > 0 || pwrite(descriptor, &byte, 1, 0) == 1 else {
            throw LogError(errno: errno, "write \(path)")
        }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Runs `body` while no other process, and no other user of the file in this one, is inside.
    func whileHeld<R, E>(_ body: () throws(E) -> R) throws(E) -> R {
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 { waitForLock() }
        defer { flock(descriptor, LOCK_UN) }
        return try body()
    }

    /// `flock` has no timeout, so a thread reports a wait that takes long.
    private func waitForLock() {
        let needsWatch = wait.withLock { wait in
            wait.since = .now
            defer { wait.isWatched = true }
            return !wait.isWatched
        }
        if needsWatch, (try? LogThread.detach("lock-watch") { [self] in watch() }) == nil {
            wait.withLock { $0.isWatched = false }
        }
        while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
        let reported = wait.withLock { wait in
            defer { (wait.since, wait.isReported) = (nil, false) }
            return wait.isReported ? wait.since : nil
        }
        if let reported { report(LockWait(file: path, waited: ContinuousClock.now - reported, isOver: true)) }
    }

    /// Looks at the wait until it has ended.
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

    /// Runs `body` as `whileHeld` does. Returns nil if another process holds the lock for the whole timeout.
    func whileHeld<R>(waitingAtMost time: Duration, _ body: () -> R) -> R? {
        let end = ContinuousClock.now + time
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR || ContinuousClock.now < end else { return nil }
            usleep(1_000)
        }
        defer { flock(descriptor, LOCK_UN) }
        return body()
    }

    /// How often the log's file was closed, as of the last time in this folder. Read and written by the holder.
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

    /// Ends `listen`: the bell may be heard further on, but nobody rings it for this user.
    func stopListening() {
        var byte = Self.byte(F_UNLCK)
        _ = fcntl(descriptor, reel_open_file_setlk, &byte)
    }

    /// Hears the bell from now on, until this lock and the watch are gone.
    func listen() throws(LogError) -> CommitNotifications {
        let watch = try CommitNotifications(path)
        var byte = Self.byte(F_RDLCK)
        guard fcntl(descriptor, reel_open_file_setlk, &byte) == 0 else {
            throw LogError(errno: errno, "listen to \(path)")
        }
        return watch
    }

    /// Wakes the readers of other processes, and of other users of the file in this one; where there is one, also who
    /// rings, if he listens. Who begins to listen behind the look finds what was committed before it.
    func ring() {
        guard isListenedTo else { return }
        var read: UInt8 = 0
        _ = pread(descriptor, &read, 1, 0)
    }

    /// The lock of a listener is the open file's, not the process's: one's own is in nobody's way.
    private static func byte(_ kind: Int32) -> Glibc.flock {
        Glibc.flock(l_type: Int16(kind), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 1, l_pid: 0)
    }
}

/// Hears the bell of a `FileLock`; a descriptor that is readable once it has been rung.
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

    /// Forgets the rings so far.
    func silence() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
