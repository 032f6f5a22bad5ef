import CRdkafka
import Foundation
import NodeTestSupport
import ReelCheck
import ReelGateway
import ReelKafka
import ReelLab
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelTool

/// Tests producers that get a fatal error on the mock cluster while clients publish. The clients
/// resend the events without an ack.
@Suite(.timeLimit(.minutes(10))) struct FatalProducerTests {
    @Test("no op is skipped doubled or reordered") func noOpIsSkipped() async throws {
        let mock = try MockBrokers(1)
        let folder = try TemporaryFolder(prefix: "reel-fatal-")
        let log = try mock.currentLog(partitions: 2)
        // With this delay some events are always in flight.
        mock.delay(ms: 100)
        var settings = GatewaySettings()
        settings.node = .forTests
        // On a busy machine a test process may wait long for a processor.
        (settings.helloMs, settings.pingMs) = (1_000_000, 1_000_000)
        let gateway = try Gateway(log: log, settings: settings, logger: Logger { _ in })

        let run = folder.path + "/run"
        let streams = try #require(LoadPlan.streams("load", count: 2))
        var plan = LoadPlan(urls: ["http://\(gateway.address)"], streams: streams)
        (plan.publishers, plan.readers, plan.rate) = (4, 2, 50)
        (plan.patienceSeconds, plan.settleSeconds) = (300, 300)
        plan.histories = try HistoryFolder(run)
        let load = try LoadRun(plan)
        let report = Task { try await load.run() }
        defer { load.stop() }
        for producer in 1...3 {
            try await acks(50, load)
            // A fatal error for the producer: its sequence numbers are out of order.
            mock.fail(.produce, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER)
            try await eventually("producer \(producer) is replaced") { log.counts.rebuilds >= producer }
        }
        try await acks(50, load)
        load.stop()
        let found = try await report.value
        #expect(found.isComplete, "\(found.problems)")
        #expect(found.statistics.resent > 0)
        // The second call ends the gateway without a drain.
        for _ in 0..<2 { gateway.end.begin() }
        await gateway.waitUntilEnded()
        log.close()

        mock.delay(ms: 0)
        try await dump(mock, to: run + "/log.jsonl")
        let verdict = try await RunCheck(folder: run, logs: []).verdict()
        #expect(verdict.word == .valid, "\(verdict.text)")
        withExtendedLifetime(folder) {}
    }

    /// Waits until `count` more events are acked.
    private func acks(_ count: Int, _ load: LoadRun) async throws {
        let goal = try await load.statistics().acked + count
        try await eventually("\(goal) acks") { try await load.statistics().acked >= goal }
    }

    /// The brokers live in this process, which may be delayed. The command then runs again.
    private func dump(_ mock: MockBrokers, to file: String) async throws {
        let words = ["dump", "--log", "kafka:\(mock.brokers[0])"]
        var run = try await BuiltProgram.run(words)
        for _ in 0..<5 where run.code == ExitCode.unreachable.rawValue { run = try await BuiltProgram.run(words) }
        #expect(run.code == 0, "\(run)")
        try run.output.write(toFile: file, atomically: true, encoding: .utf8)
    }
}
