import ReelCore
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelNode

/// Tests the notices of a running node about the store of its log.
@Suite(.timeLimit(.minutes(2)))
struct StoreWatchTests {
    /// A store whose complaints a test sets; with nil the store is unavailable.
    private final class Store: LogStore {
        let found = Mutex<[String]?>([])
        let checks = Mutex(0)
        func complaints() throws(LogError) -> [String] {
            checks.withLock { $0 += 1 }
            guard let found = found.withLock({ $0 }) else { throw LogError(.logUnavailable, "nobody answers") }
            return found
        }

        func current() throws(LogError) -> CurrentLog? { nil }
        func create(_ epoch: Epoch, partitions: Int) throws(LogError) {}
        func open(_ epoch: Epoch) throws(LogError) -> any EventLog { throw LogError(.logUnavailable, "not here") }
        func advance(to next: CurrentLog) throws(LogError) {}
        func close() {}
    }

    @Test("a setting that is changed while the node runs is a notice and a line, until it is right again")
    func settings() async throws {
        let (store, lines) = (Store(), Lines())
        let logger = Logger(threshold: .debug) { lines.add($0) }
        let watch = StoreWatch(store, logger: logger)
        let loop = try EventLoop()
        let end = GracefulShutdown(on: loop, settings: NodeSettings(), logger: logger) {
        } askToLeave: { _ in
        } connections: {
            0
        }
        watch.start(until: end, every: .milliseconds(5))
        #expect(watch.notice == nil)
        store.found.withLock { $0 = ["reel.9f: retention.ms is 86400000, wanted is -1"] }
        try await eventually("a notice") { watch.notice == "reel.9f: retention.ms is 86400000, wanted is -1" }
        store.found.withLock { $0 = nil }
        // A check begins when the one before it was answered. The first one here may have read the former complaint.
        let before = store.checks.withLock { $0 }
        try await eventually("two checks without an answer") { store.checks.withLock { $0 } >= before + 3 }
        #expect(watch.notice != nil, "a store that is away takes nothing back")
        store.found.withLock { $0 = [] }
        // The line follows the notice on another thread.
        try await eventually("the second line") { lines.all.count { $0.contains("the log's store") } >= 2 }
        #expect(watch.notice == nil)
        let said = lines.all.filter { $0.contains("the log's store") }
        #expect(said.count == 2, "\(said)")
        #expect(said.first?.contains("level=error") == true)
        #expect(said.last?.contains("as it must be again") == true)
        loop.stop()
        loop.join()
    }
}
