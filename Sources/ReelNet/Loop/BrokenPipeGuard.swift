import Glibc

/// A guard that keeps SIGPIPE from the process while libuv writes to connections. Used on the loop's thread only.
///
/// A write to a connection that the peer has closed raises SIGPIPE in the thread that writes. Reel's own writes switch
/// that off with MSG_NOSIGNAL. libuv calls `write` instead; it writes what the kernel has not taken at once. So the
/// thread blocks the signal while such a write waits, and then drops the signal if it was raised.
///
/// It does not block the signal for longer, because new threads and programs inherit the signals that their creator
/// blocks. The Swift runtime creates the threads of its pools on any thread, also on a loop's thread, and these threads
/// belong to the process.
struct BrokenPipeGuard {
    private var writes = 0
    private var wasBlocked = false

    /// Called when a write of libuv begins.
    mutating func begin() {
        writes += 1
        guard writes == 1 else { return }
        var (signals, former) = (Self.signals, sigset_t())
        pthread_sigmask(SIG_BLOCK, &signals, &former)
        wasBlocked = sigismember(&former, SIGPIPE) == 1
    }

    /// Called when a write of libuv has ended.
    mutating func end() {
        writes -= 1
        guard writes == 0, !wasBlocked else { return }
        var (signals, atOnce) = (Self.signals, timespec())
        while sigtimedwait(&signals, nil, &atOnce) < 0, errno == EINTR {}
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    private static let signals: sigset_t = {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        return signals
    }()
}
