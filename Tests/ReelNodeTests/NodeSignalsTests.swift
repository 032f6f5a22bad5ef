import Glibc
import ReelNet
import Testing

@testable import ReelNode

@Suite(.serialized, .timeLimit(.minutes(1))) struct NodeSignalsTests {
    private func end(on loop: EventLoop) -> NodeEnd {
        NodeEnd(on: loop, settings: NodeSettings(), journal: Journal(threshold: .error)) { _ in
        } connections: {
            0
        }
    }

    @Test func aSignalWhileThereIsNoNodeEndsTheNextOne() async throws {
        let signals = try NodeSignals(NodeSettings(), journal: Journal(threshold: .error))
        let loop = try EventLoop()
        defer { loop.stop() }
        signals.meet(end(on: loop))
        signals.meet(nil)
        #expect(!signals.isEndRequested)
        kill(getpid(), SIGTERM)
        while !signals.isEndRequested { try await Task.sleep(for: .milliseconds(1)) }
        let next = end(on: loop)
        signals.meet(next)
        await next.wait()
        #expect(next.isRequested)
    }
}
