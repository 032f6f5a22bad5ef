import EventLogConformance
import Glibc
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelNode

@Suite(.serialized, .timeLimit(.minutes(20))) struct NodeSignalsTests {
    private func end(on loop: EventLoop) -> GracefulShutdown {
        GracefulShutdown(on: loop, settings: NodeSettings(), logger: Logger(threshold: .error)) {
        } askToLeave: { _ in
        } connections: {
            0
        }
    }

    @Test("a signal while there is no node ends the next one") func aSignalWhileThere() async throws {
        let left = Mutex<[Int32]>([])
        let signals = try NodeSignals(NodeSettings(), logger: Logger(threshold: .error)) { code in
            left.withLock { $0.append(code) }
        }
        let loop = try EventLoop()
        defer { loop.stop() }
        signals.meet(end(on: loop))
        signals.meet(nil)
        #expect(!signals.isEndRequested)
        kill(getpid(), SIGTERM)
        try await eventually("the signal") { signals.isEndRequested }
        let next = end(on: loop)
        signals.meet(next)
        await next.wait()
        #expect(next.isRequested)
        // Nothing closes the node here, so the signals end the process; the test only records the exit code.
        try await eventually("the end") { left.withLock { !$0.isEmpty } }
        #expect(left.withLock { $0 } == [EXIT_SUCCESS])
    }
}
