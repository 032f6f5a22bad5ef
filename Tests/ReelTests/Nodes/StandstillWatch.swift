import Foundation
import Synchronization

/// Measures delays: of a thread of this process that sleeps for a moment, and of nodes that are asked for their health.
/// A test needs them to judge a client that disconnected.
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
                    // A node that has ended refuses immediately.
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

    /// Stops the measurement.
    func stop() { isOver.store(true, ordering: .relaxed) }

    /// Stops the measurement and returns the longest delay.
    func end() async -> Duration {
        stop()
        for task in tasks.withLock({ $0 }) { await task.value }
        return longest.withLock { $0 }
    }
}
