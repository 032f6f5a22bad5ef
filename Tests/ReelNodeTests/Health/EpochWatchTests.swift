import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelNode

/// Tests when a node leaves its log for the next one.
@Suite(.timeLimit(.minutes(20))) struct EpochWatchTests {
    /// A store that reports which log is the current one.
    private final class Store: LogStore {
        private let state: Mutex<(answer: CurrentLog, asked: Int)>

        init(_ answer: CurrentLog) { state = Mutex((answer, 0)) }

        var asked: Int { state.withLock { $0.asked } }

        func say(_ answer: CurrentLog) { state.withLock { $0 = (answer, 0) } }

        func current() throws(LogError) -> CurrentLog? {
            state.withLock { state in
                state.asked += 1
                return state.answer
            }
        }

        func create(_ epoch: Epoch, partitions: Int) throws(LogError) {}
        func open(_ epoch: Epoch) throws(LogError) -> any EventLog { throw LogError(.internal, "there is none") }
        func advance(to next: CurrentLog) throws(LogError) {}
        func close() {}
    }

    private func log(_ epoch: UInt64, _ number: Int) -> CurrentLog {
        CurrentLog(epoch: Epoch(epoch), partitions: 1, number: number)
    }

    @Test("a node goes to the next log and never back to one of before") func aNodeGoesTo() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let end = GracefulShutdown(on: loop, settings: NodeSettings(), logger: Logger(threshold: .error)) {
        } askToLeave: { _ in
        } connections: {
            0
        }
        let store = Store(log(5, 3))
        let watch = EpochWatch(store, current: log(5, 3), end: end, logger: Logger(threshold: .error)) { true }
        for answer in [log(5, 3), log(4, 2), log(7, 3)] {
            store.say(answer)
            // At the second request the watch has processed the first answer.
            try await eventually("it is asked again") { store.asked >= 2 }
            #expect(watch.next == nil)
        }
        store.say(log(6, 4))
        await end.wait()
        #expect(watch.next == log(6, 4))
        #expect(!end.isRequested)
    }

    @Test("one request while the node moves on lets its clients leave and ends it") func oneRequestWhileThe()
        async throws
    {
        let loop = try EventLoop()
        defer { loop.stop() }
        let connections = Atomic(1)
        let lines = Mutex<[String]>([])
        let logger = Logger { line in lines.withLock { $0.append(line) } }
        var settings = NodeSettings()
        settings.drainLimitMs = 1_000_000
        let end = GracefulShutdown(on: loop, settings: settings, logger: logger) {
        } askToLeave: { _ in
        } connections: {
            connections.load(ordering: .relaxed)
        }
        let watch = EpochWatch(Store(log(6, 4)), current: log(5, 3), end: end, logger: logger) { true }
        try await eventually("the next log") { watch.next != nil }
        end.begin()
        try await eventually("the request") { end.isRequested }
        connections.store(0, ordering: .relaxed)
        await end.wait()
        let last = lines.withLock { $0.last ?? "" }
        #expect(last.contains("all have left"), "\(last)")
        #expect(watch.next == nil, "the process ends")
    }
}
