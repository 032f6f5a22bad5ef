internal import CLinux
internal import Glibc
internal import ReelCore

/// Wakes one waiting thread. Several calls of `ring` before the thread wakes count as one. It is an `eventfd`, so a
/// thread can wait for it together with other descriptors.
final class WakeUp: Sendable {
    let descriptor: Int32

    init() throws(LogError) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw LogError(errno: errno, "make an eventfd") }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Wakes the waiting thread, or the next one that waits. From any thread.
    func ring() {
        eventfd_write(descriptor, 1)
    }

    /// Waits until `ring` is called.
    func wait() {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, -1) < 0, errno == EINTR {}
        silence()
    }

    /// Discards the pending wake-ups.
    func silence() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
    }
}
