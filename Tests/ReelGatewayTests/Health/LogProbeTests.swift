import Dispatch
import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that a gateway detects an unavailable log without any publish.
@Suite(.timeLimit(.minutes(5)))
struct LogProbeTests {
    /// A log whose partition 1 reports its end only when a test allows it.
    private final class MuteLog: ForwardingLog {
        let log: any EventLog
        private let isMute = Atomic<Bool>(false)
        private let word = DispatchSemaphore(value: 0)

        init(_ log: any EventLog) { self.log = log }

        func mute() { isMute.store(true, ordering: .relaxed) }

        func speak() {
            isMute.store(false, ordering: .relaxed)
            word.signal()
        }

        func bounds(_ partition: Int) throws(LogError) -> LogBounds {
            if partition == 1, isMute.load(ordering: .relaxed) { word.wait() }
            return try log.bounds(partition)
        }

        func close() { log.close() }
    }

    @Test("a partition that does not answer makes the log unavailable, and the node stays ready")
    func silent() async throws {
        let log = MuteLog(try MemoryLog(partitions: 2))
        try await LiveGateway.with(log) { live in
            log.mute()
            try await live.state(becomes: "unavailable")
            let body = try await live.ready()
            #expect(body.contains("partition 1 of the log has not answered for"), "\(body)")
            #expect(
                body.contains(#""partition":1,"ready":true,"seq":-1,"goal":-1,"code":"log_unavailable""#),
                "\(body)"
            )
            log.speak()
            try await live.state(becomes: "ok")
        }
    }

    @Test("a partition that answers with an error is unavailable for that reason, until it answers")
    func failing() async throws {
        let log = try MemoryLog(partitions: 2)
        try await LiveGateway.with(log) { live in
            log.lose(1, LogError(.forbidden, "no right to describe the topic"))
            try await live.state(becomes: "unavailable")
            #expect(try await live.ready().contains("no right to describe the topic"))
            log.lose(1, nil)
            try await live.state(becomes: "ok")
        }
    }
}
