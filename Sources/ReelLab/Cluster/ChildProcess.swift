import Glibc
import ReelBase

/// A child process: its standard output as lines, signals to it, its exit status.
///
/// The process is killed when the last reference to this object is released, or with this process. Use it from one
/// thread at a time.
public final class ChildProcess {
    /// The way in which a process ended.
    public enum End: Equatable, Sendable {
        case exited(Int32)
        case signalled(Int32)
    }

    /// An error of a child process.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// One sentence for a person.
        public let description: String
    }

    /// The process id.
    public let pid: Int32
    /// The way in which the process ended; nil until it is known.
    public private(set) var end: End?
    private var isPaused = false
    /// The descriptor from which its standard output is read; nil if it goes to a file.
    private let output: Int32?
    private var pending: [UInt8] = []

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - executable: the path of the program.
    ///   - arguments: its arguments.
    ///   - outputLog: the path of a file to which standard output is appended; nil: it is read line by line with
    ///     `readLine`.
    ///   - errorLog: the path of a file to which standard error is appended; nil: it is shared with this process.
    /// - Throws: An error if the program cannot be started, or there is no file descriptor left.
    public init(
        _ executable: String,
        _ arguments: [String],
        outputLog: String? = nil,
        errorLog: String? = nil
    ) throws(Failure) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var ends: [Int32] = []
        if let outputLog {
            posix_spawn_file_actions_addopen(&actions, 1, outputLog, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        } else {
            ends = [0, 0]
            guard pipe(&ends) == 0 else {
                throw Failure(description: "cannot make a pipe: \(String(cString: strerror(errno)))")
            }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        if let errorLog {
            posix_spawn_file_actions_addopen(&actions, 2, errorLog, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        }
        var argv: [UnsafeMutablePointer<CChar>?] = ([executable] + arguments).map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        var child: pid_t = 0
        let result = posix_spawn(&child, executable, &actions, nil, &argv, environ)
        if let end = ends.last { close(end) }
        guard result == 0 else {
            if let end = ends.first { close(end) }
            throw Failure(description: "cannot start \(executable): \(String(cString: strerror(result)))")
        }
        pid = child
        output = ends.first
        OrphanWatch.began(pid)
    }

    deinit {
        if end == nil {
            kill(pid, SIGKILL)
            reap(0)
        }
        if let output { close(output) }
    }

    /// Returns the next line that the child printed, without its newline; nil at the end of its output. Throws if there
    /// is no line within `timeoutMs`.
    public func readLine(timeoutMs: Int) throws(Failure) -> String? {
        let deadline = MonotonicClock.nowMs() + Int64(timeoutMs)
        while true {
            if let newline = pending.firstIndex(of: 0x0A) {
                let line = String(decoding: pending[..<newline], as: UTF8.self)
                pending.removeSubrange(...newline)
                return line
            }
            let rest = deadline - MonotonicClock.nowMs()
            guard rest > 0 else {
                throw Failure(description: "process \(pid) printed no line within \(timeoutMs) ms")
            }
            guard let output else { return nil }
            var descriptor = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard Glibc.poll(&descriptor, 1, Int32(clamping: rest)) > 0 else { continue }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &chunk, chunk.count)
            if count > 0 {
                pending.append(contentsOf: chunk[..<count])
            } else if count == 0 || errno != EINTR {
                return nil
            }
        }
    }

    /// Sends a signal, if the process still runs.
    public func signal(_ number: Int32) {
        if !hasEnded() { kill(pid, number) }
    }

    /// Returns true if the process has ended.
    public func hasEnded() -> Bool {
        reap(WNOHANG)
        return end != nil
    }

    /// Stops the process with SIGSTOP; its sockets stay open. Returns when all its threads have stopped: they continue
    /// to run for a moment after the signal.
    public func pause() {
        guard !isPaused, !hasEnded() else { return }
        isPaused = true
        kill(pid, SIGSTOP)
        reap(WUNTRACED)
    }

    /// Lets the process continue with SIGCONT.
    public func resume() {
        isPaused = false
        signal(SIGCONT)
    }

    /// Sends SIGKILL and waits for the end.
    public func killNow() {
        signal(SIGKILL)
        reap(0)
    }

    /// Sends SIGTERM and waits. After `timeoutMs` the process is killed. Returns how it ended.
    @discardableResult
    public func terminate(timeoutMs: Int) -> End? {
        signal(SIGTERM)
        return wait(timeoutMs: timeoutMs)
    }

    /// Waits for the end. After `timeoutMs` the process is killed. Returns how it ended.
    @discardableResult
    public func wait(timeoutMs: Int) -> End? {
        let deadline = MonotonicClock.nowMs() + Int64(timeoutMs)
        while !hasEnded() {
            if MonotonicClock.nowMs() >= deadline {
                killNow()
                break
            }
            usleep(2_000)
        }
        return end
    }

    private func reap(_ options: Int32) {
        guard end == nil else { return }
        var status: Int32 = 0
        let stopped: Int32 = 0x7F
        guard waitpid(pid, &status, options) == pid, status & 0xFF != stopped else { return }
        OrphanWatch.ended(pid)
        let signal = status & 0x7F
        end = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    }
}
