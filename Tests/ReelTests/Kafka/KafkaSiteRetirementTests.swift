import Foundation
import ReelClient
import ReelCore
import ReelLab
import TestSupport
import Testing

/// Tests `reel site retire` on a real broker that is killed during the test.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(8))) struct KafkaSiteRetirementTests {
    @Test("a device of a retired idle site continues as another site on a real Kafka without loss")
    func continuesAsAnotherSite() async throws {
        let deployment = try await KafkaDeployment()
        let snapshot = try NodeProcess(
            ["snapshot", "--log", deployment.log, "--data", deployment.folder.path + "/state"],
            in: deployment.folder,
            name: "snapshot"
        )
        let nodes = [deployment.gateway.url]
        let away = try CountingDevice("away", nodes, in: deployment.folder)
        var client = try away.open()
        var stream = try await client.open("todo")
        try await away.make(stream)
        try await away.add(3, stream)
        try await eventually("the device has sent all") { stream.status.pendingCount == 0 }
        await client.close()

        let busy = try CountingDevice("busy", nodes, in: deployment.folder)
        let other = try busy.open()
        let busyStream = try await other.open("todo")
        try await busy.make(busyStream)
        // One after the other: events that wait at the same time are merged into one.
        for _ in 0..<40 {
            try await busy.add(1, busyStream)
            try await eventually("the other device has sent it") { busyStream.status.pendingCount == 0 }
        }
        client = try away.open(isOnline: false)
        stream = try await client.open("todo")
        try await away.add(2, stream)
        await client.close()

        // The operator's command fails while the broker is dead, and runs again.
        let seq = busyStream.status.seq
        _ = try await snapshot.snapshot(of: "todo", upTo: seq)
        let place = ["todo", "--url", snapshot.url]
        let retire = ["site", "retire"] + place + ["--idle-events", "20", "--log", deployment.log]
        deployment.kafka.kill(1)
        let failed = try await BuiltProgram.run(retire)
        #expect(failed.code != 0 && failed.errors.contains("log_unavailable"), "\(failed)")
        try deployment.kafka.start([1])
        let run = try await BuiltProgram.run(retire)
        #expect(run.code == 0, "\(run)")
        #expect(try await barriers(deployment) == 1)
        let again = try await BuiltProgram.run(retire)
        #expect(again.code == 0, "\(again)")
        #expect(try await barriers(deployment) == 1, "the same retirement is not written twice: \(again)")

        client = try away.open()
        stream = try await client.open("todo")
        try await eventually("the device that was away has sent all") { stream.status.pendingCount == 0 }
        #expect(away.count(on: stream) == 5)
        try await busy.add(1, busyStream)
        try await eventually("the device that stayed has sent all") { busyStream.status.pendingCount == 0 }
        #expect(busy.count(on: busyStream) == 41)

        _ = try await snapshot.snapshot(of: "todo", upTo: busyStream.status.seq)
        let living = try await BuiltProgram.run(["site", "list", "--json"] + place)
        let ended = try await BuiltProgram.run(["site", "list", "--json", "--ended"] + place)
        #expect(living.output.split(separator: "\n").count == 2, "\(living)")
        #expect(ended.output.split(separator: "\n").count == 1, "\(ended)")
        let fromLog = try await BuiltProgram.run(["site", "list", "todo", "--json", "--log", deployment.log])
        #expect(untimed(fromLog) == untimed(living), "\(fromLog), \(living)")
        await client.close()
        await other.close()
    }

    /// Returns the lines without the age, which depends on the time of the run.
    private func untimed(_ run: BuiltProgram.Run) -> String { run.output.replacing(/,"idle_ms":\d+/, with: "") }

    /// Returns the number of barriers that retire sites in the log.
    private func barriers(_ deployment: KafkaDeployment) async throws -> Int {
        try await deployment.dump().filter { $0.key == "~reel" && $0.value.contains("retire") }.count
    }
}
