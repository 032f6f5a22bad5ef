import ReelNet
import Synchronization

/// The request to end the process while a demo runs. The demo then ends between two steps, and removes its nodes and
/// its folder.
final class DemoInterruption: Sendable {
    private let isAsked = Atomic<Bool>(false)

    /// Watches for the signals on this loop.
    init(on loop: EventLoop) throws {
        try loop.sync { loop.onInterruption { [self] in isAsked.store(true, ordering: .relaxed) } }
    }

    /// Throws if the process was asked to end.
    func check() throws(ChildProcess.Failure) {
        guard isAsked.load(ordering: .relaxed) else { return }
        throw ChildProcess.Failure(description: "interrupted; the nodes are ended and their folder is removed")
    }

    /// Returns once the process is asked to end.
    func wait() async throws {
        while !isAsked.load(ordering: .relaxed) { try await Task.sleep(for: .milliseconds(50)) }
    }
}
