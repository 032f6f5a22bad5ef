import ReelNet
import Synchronization

/// Whether the process was asked to end while a demo runs: it then ends between two steps, with its nodes and its
/// folder.
final class DemoInterruption: Sendable {
    private let isAsked = Atomic<Bool>(false)

    /// Watches for the signals on this loop.
    init(on loop: EventLoop) throws {
        try loop.sync { loop.onInterruption { [self] in isAsked.store(true, ordering: .relaxed) } }
    }

    /// Throws if it was asked to end.
    func check() throws(ChildProcess.Failure) {
        guard isAsked.load(ordering: .relaxed) else { return }
        throw ChildProcess.Failure(description: "interrupted; the nodes are ended and their folder is removed")
    }

    /// Returns once it is asked to end.
    func wait() async throws {
        while !isAsked.load(ordering: .relaxed) { try await Task.sleep(for: .milliseconds(50)) }
    }
}
