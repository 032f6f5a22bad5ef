import Foundation
import ReelCore
import ReelLab
import ReelNet
import Testing

@testable import reel

/// What runs on the embedded log runs on Kafka, unchanged.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(20))) struct KafkaNodesTests {
    @Test func theDemoHoldsThoughTheLeadingBrokerIsKilled() async throws {
        let run = try await BuiltProgram.run(["demo", "--apache-kafka", try RealKafka.home().path], seconds: 600)
        #expect(run.code == 0, "\(run)")
        #expect(run.output.contains("All held") && run.output.contains("SIGKILL to broker"), "\(run)")
    }

    @Test func aRecordedSessionEndsRightThroughTwoGatewaysAndInASnapshotNodeThatStartsCold() async throws {
        guard let traces = ProcessInfo.processInfo.environment["REEL_TRACES"] else {
            return print("NOT TESTED: REEL_TRACES names no folder of recorded sessions; two authors through Kafka")
        }
        let file = traces + "/friendsforever.json.gz"
        let session = try EditingSession(file: Array(Data(contentsOf: URL(filePath: file))))
        let deployment = try await KafkaDeployment()
        let second = try NodeProcess(["gateway", "--log", deployment.log], in: deployment.folder, name: "second")
        let warm = try snapshotNode("warm", of: deployment)
        let words = ["replay", file, "--url", deployment.gateway.url, "--url", second.url, "--json"]
        let run = try await BuiltProgram.run(words, seconds: 600)
        #expect(run.code == 0 && run.output.contains(#""right":true"#), "\(run)")

        let last = try #require(try await deployment.last())
        warm.process.killNow()
        let cold = try snapshotNode("cold", of: deployment)
        let snapshot = try SnapshotLines(try await cold.snapshot(of: last.key, upTo: Seq(last.seq)))
        let text = try snapshot.lines.compactMap { try ObjectLine($0) }.first?.fields.first?.value
        #expect(text.map { Array($0.utf8) } == session.endValue)
    }

    private func snapshotNode(_ name: String, of deployment: KafkaDeployment) throws -> NodeProcess {
        let words = ["snapshot", "--log", deployment.log, "--data", "\(deployment.folder.path)/\(name)"]
        return try NodeProcess(words, in: deployment.folder, name: name)
    }
}
