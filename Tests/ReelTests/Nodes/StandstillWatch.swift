import Foundation
import Synchronization

/// Watches whether somebody stands still: a thread of this process that sleeps for a moment, or a node that is asked
/// whether it is healthy. What a test makes of a client that gave up depends on it.
final class StandstillWatch: Sendable {
    private let longest = Mutex(Duration.zero)
    private let isOver = Atomic(false)
    private let tasks = Mutex<[Task<Void, Never>]>([])

    /// Watches this process and the nodes at these ports, until it is stopped.
    init(_ ports: [UInt16]) {
        Thread.detachNewThread { [self] in
            while !isOver.load(ordering: .relaxed) {
                let start = ContinuousClock.now
                Thread.sleep(forTimeInterval: 0.01)
                note(since: start)
            }
        }
        for port in ports {
            let task = Task { [self] in
                while !isOver.load(ordering: .relaxed) {
                    let start = ContinuousClock.now
                    // A node that has ended refuses at once.
                    _ = try? await Asker.ask("GET", port: port, "/healthz", body: "")
                    note(since: start)
                    try? await Task.sleep(for: .milliseconds(100))
                }
            }
            tasks.withLock { $0.append(task) }
        }
    }

    private func note(since start: ContinuousClock.Instant) {
        let took = ContinuousClock.now - start
        longest.withLock { $0 = max($0, took) }
    }

    /// Watches no longer.
    func stop() { isOver.store(true, ordering: .relaxed) }

    /// Watches no longer; the longest time that somebody took.
    func end() async -> Duration {
        stop()
        for task in tasks.withLock({ $0 }) { await task.value }
        return longest.withLock { $0 }
    }
}
