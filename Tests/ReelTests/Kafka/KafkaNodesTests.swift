import Foundation
import ReelClient
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests that programs for the embedded log run on Kafka without a change.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(20))) struct KafkaNodesTests {
    @Test("the demo holds though the leading broker is killed") func theDemoHoldsThough() async throws {
        let run = try await BuiltProgram.run(["demo", "--apache-kafka", try RealKafka.home().path], seconds: 600)
        #expect(run.code == 0, "\(run)")
        #expect(run.output.contains("All held") && run.output.contains("SIGKILL to broker"), "\(run)")
    }

    @Test("a recorded session ends right through two gateways and in a snapshot node that starts cold")
    func aRecordedSessionEnds() async throws {
        guard let traces = ProcessInfo.processInfo.environment["REEL_TRACES"], !traces.isEmpty else {
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

    @Test("a snapshot node folds a device's events, and the log alone lists the nodes") func foldsAndListsNodes()
        async throws
    {
        let deployment = try await KafkaDeployment()
        let snapshot = try snapshotNode("snapshot", of: deployment)
        let device = try CountingDevice("device", [deployment.gateway.url], in: deployment.folder)
        let client = try device.open()
        let stream = try await client.open("todo")
        try await device.make(stream)
        try await device.add(20, stream)
        try await eventually("all is consumed") { device.count(on: stream) == 20 }
        let last = try #require(try await deployment.last())
        let lines = try SnapshotLines(try await snapshot.snapshot(of: "todo", upTo: Seq(last.seq))).lines
        let object = try lines.compactMap { try ObjectLine($0) }.first
        #expect(object?.text == "n=20")

        let expected = [
            "gateway \(deployment.gateway.url) at \(last.seq), lag 0",
            "snapshot \(snapshot.url) at \(last.seq), lag 0",
        ]
        try await eventually("`reel cluster` names both, with all that there is") {
            try await cluster(deployment.log, partition: last.partition) == expected
        }
    }

    /// Returns the nodes that `reel cluster` prints from the log, each with its position in a partition.
    private func cluster(_ log: String, partition: Int) async throws -> [String] {
        let run = try await BuiltProgram.run(["cluster", "--log", log, "--json"])
        return try run.output.split(separator: "\n").map { line in
            let node = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            let places = (node?["roles"] as? [[String: Any]])?.first?["partitions"] as? [[String: Any]]
            let place = places?.first { $0["partition"] as? Int == partition }
            let (role, url) = (node?["role"] as? String ?? "", node?["url"] as? String ?? "")
            return "\(role) \(url) at \(place?["seq"] as? Int ?? -2), lag \(place?["lag"] as? Int ?? -2)"
        }.sorted()
    }

    @Test("a gateway notices a dead broker without publishes, and the doctor reports it")
    func deadBroker() async throws {
        let deployment = try await KafkaDeployment()
        let gateway = deployment.gateway
        try await eventually("the log is ok") { try await gateway.members("/readyz")["log"] as? String == "ok" }
        deployment.kafka.kill(1)
        let killed = ContinuousClock.now
        try await eventually("the gateway says that the log is away") {
            try await gateway.members("/readyz")["log"] as? String == "unavailable"
        }
        print("MEASURED: a dead broker is noticed after \(ContinuousClock.now - killed)")
        let doctor = try await BuiltProgram.run(["doctor", "--url", gateway.url])
        #expect(doctor.code == 1 && doctor.output.contains("log_unavailable"), "\(doctor)")
        #expect(!doctor.output.contains("no such partition"), "a broker that is away has said nothing: \(doctor)")
        try deployment.kafka.start([1])
        try await eventually("the log is ok again") { try await gateway.members("/readyz")["log"] as? String == "ok" }
    }

    @Test("a setting of the topic that is changed under a running node is a notice and a problem of the doctor")
    func changedSetting() async throws {
        let deployment = try await KafkaDeployment()
        let topic = ["--entity-type", "topics", "--entity-name", deployment.topic]
        let changed = ["--alter", "--add-config", "retention.ms=86400000"]
        try deployment.kafka.tool("kafka.admin.ConfigCommand", topic + changed)
        try await eventually("the gateway has a notice") {
            (try await deployment.gateway.members("/readyz")["notice"] as? String)?.contains("retention.ms") == true
        }
        for words in [["--url", deployment.gateway.url], ["--log", deployment.log]] {
            let doctor = try await BuiltProgram.run(["doctor"] + words)
            #expect(doctor.code == 1 && doctor.output.contains("retention.ms is 86400000"), "\(doctor)")
        }
        try deployment.kafka.tool(
            "kafka.admin.ConfigCommand",
            topic + ["--alter", "--add-config", "retention.ms=-1"]
        )
        try await eventually("it has none any more") {
            try await deployment.gateway.members("/readyz")["notice"] == nil
        }
    }

    @Test("an event that the brokers no longer take is too large, and smaller events are still accepted")
    func anEventThatThe()
        async throws
    {
        let deployment = try await KafkaDeployment()
        let topic = ["--entity-type", "topics", "--entity-name", deployment.topic]
        let lowered = ["--add-config", "max.message.bytes=20000"]
        try deployment.kafka.tool("kafka.admin.ConfigCommand", ["--alter"] + topic + lowered)
        // The brokers apply the limit a moment later, and the gateway then asks them for it.
        // Each attempt needs a new event.
        var (site, refusal) = (0, "")
        try await eventually("an event is refused") {
            site += 1
            let answer = try await publish(50_000, by: site, through: deployment.gateway)
            refusal = String(decoding: answer.body, as: UTF8.self)
            return answer.status == 413
        }
        let metrics = String(decoding: try await deployment.gateway.ask("GET", "/metrics").body, as: UTF8.self)
        let shown = try #require(metrics.firstMatch(of: /reel_kafka_record_limit_bytes (\d+)/))
        let most = try #require(Int(shown.1)) - "todo".utf8.count
        #expect(15_000..<20_000 ~= most)
        #expect(refusal.contains(#""code":"too_large""#), "\(refusal)")
        #expect(refusal.contains("the log takes at most \(most)"), "\(refusal)")
        try await eventually("a smaller one is taken") {
            site += 1
            return try await publish(10_000, by: site, through: deployment.gateway).status == 200
        }
    }

    /// Publishes the first event of a site, with slightly more than this number of bytes, and returns the answer.
    private func publish(_ bytes: Int, by number: Int, through gateway: NodeProcess) async throws -> HTTPResponse {
        let site = "00000000-0000-4000-8000-" + String(3_000_000_000_000 + number).dropFirst()
        let fields = #"{"t":"\#(String(repeating: "x", count: bytes))"}"#
        let event = EventText.sent("insert", site, 0, #""model":"m","id":"\#(number)","fields":\#(fields)"#)
        return try await gateway.ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(event.text)]}"#)
    }

    private func snapshotNode(_ name: String, of deployment: KafkaDeployment) throws -> NodeProcess {
        let words = ["snapshot", "--log", deployment.log, "--data", "\(deployment.folder.path)/\(name)"]
        return try NodeProcess(words, in: deployment.folder, name: name)
    }
}
