internal import CLinux
internal import Glibc
internal import ReelCore

/// Wakes one waiting thread: any number of rings before it looks count as one. It is an `eventfd`, so that it can be
/// waited for together with other descriptors.
final class WakeUp: Sendable {
    let descriptor: Int32

    init() throws(LogError) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw LogError(errno: errno, "make an eventfd") }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Wakes the thread that waits, or the next one that does.
    func ring() {
        eventfd_write(descriptor, 1)
    }

    /// Waits for a ring.
    func wait() {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&waiting, 1, -1) < 0, errno == EINTR {}
        silence()
    }

    /// Forgets the rings so far.
    func silence() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
    }
}
