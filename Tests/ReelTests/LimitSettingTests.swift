import Foundation
import ReelGateway
import ReelLab
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelTool

/// Tests limits and deadlines as settings: valid combinations are accepted, and they take effect.
@Suite struct LimitSettingTests {
    private func settings(_ words: [String], _ environment: [String: String] = [:]) throws -> GatewaySettings? {
        let parser = ArgumentParser(commands: CommandTable.all, environment: environment)
        guard case .run(_, let options) = try parser.request(["gateway"] + words) else { return nil }
        return try GatewayArguments.settings(options)
    }

    @Test("the defaults are those of the code") func theDefaultsAreThose() throws {
        let (asked, own) = (try #require(try settings([])), GatewaySettings())
        #expect(asked.eventBytes == own.eventBytes && asked.frameBytes == own.frameBytes)
        #expect(asked.sendQueueBytes == own.sendQueueBytes && asked.paceBytes == own.paceBytes)
        #expect(asked.peerLagMsMax == own.peerLagMsMax && asked.inFlightBytes == own.inFlightBytes)
        #expect(asked.node.headerBytes == own.node.headerBytes && asked.node.bodyBytes == own.node.bodyBytes)
        #expect(asked.node.bodyMs == own.node.bodyMs && asked.node.idleMs == own.node.idleMs)
        #expect(asked.node.drainLimitMs == own.node.drainLimitMs && asked.node.drainSpreadMs == own.node.drainSpreadMs)
    }

    @Test("each is taken from the command line and the environment") func eachIsTakenFrom() throws {
        let words = [
            "--event-bytes", "5000", "--frame-bytes", "70000", "--send-queue-bytes=200000", "--peer-lag-max-ms", "0",
            "--header-bytes", "9000", "--body-bytes", "80000", "--body-ms", "200",
        ]
        let asked = try #require(try settings(words, ["REEL_IDLE_MS": "3000", "REEL_DRAIN_MS": "4000"]))
        #expect(asked.eventBytes == 5_000 && asked.frameBytes == 70_000)
        #expect(asked.sendQueueBytes == 200_000 && asked.paceBytes == 50_000)
        #expect(asked.peerLagMsMax == 0)
        #expect(asked.node.headerBytes == 9_000 && asked.node.bodyBytes == 80_000)
        #expect(asked.node.bodyMs == 200 && asked.node.idleMs == 3_000)
        #expect(asked.node.drainLimitMs == 4_000 && asked.node.drainSpreadMs == 1_000)
    }

    @Test(
        "a gateway does not start with contradictory or out-of-range limits",
        arguments: [
            (
                ["--event-bytes", "1048576"],
                "--frame-bytes is 1048576; expected is at least 1052672, to publish an event"
            ),
            (
                ["--event-bytes", "100000", "--body-bytes", "100000"],
                "--body-bytes is 100000; expected is at least 104096"
            ),
            (["--frame-bytes", "4000000"], "--send-queue-bytes is 4194304; expected is at least 8000000, two frames"),
            (["--peer-lag-max-ms", "500"], "--peer-lag-max-ms is 500; expected is 0, or at least 10000"),
            (
                ["--event-bytes", "2000000"],
                "--event-bytes is `2000000`; expected is a whole number from 4096 to 1048576"
            ),
            (["--frame-bytes", "1000"], "--frame-bytes is `1000`; expected is a whole number from 65536 to 8388608"),
            (["--idle-ms", "0"], "--idle-ms is `0`; expected is a whole number from 1000 to 3600000"),
        ]
    ) func refusesContradictoryLimits(words: [String], says: String) async throws {
        let run = await CommandRun(["gateway"] + words + ["--listen", "127.0.0.1:0"])
        #expect(run.code == .usage, "\(run)")
        #expect(run.errors.contains(says), "\(run.errors)")
    }

    @Test("they hold") func theyHold() async throws {
        let folder = try TemporaryFolder(prefix: "reel-limits-")
        let words = [
            "--event-bytes", "5000", "--frame-bytes", "70000", "--header-bytes", "9000", "--body-bytes", "80000",
        ]
        let node = try NodeProcess(["gateway", "--log", "sqlite:\(folder.path)/log.sqlite"] + words, in: folder)
        let socket = try await RawClient.socket(port: node.port, hello: false)
        try await socket.say(#"{"t":"hello","client":"raw/1"}"#)
        let limits = try await socket.hear("welcome")["limits"] as? [String: Any]
        #expect(limits?["event"] as? Int == 5_000 && limits?["frame"] as? Int == 70_000, "\(limits ?? [:])")
        try await socket.say(#"{"t":"\#(String(repeating: "x", count: 70_000))"}"#)
        #expect(try await socket.closeCode() == 1009)

        func event(_ size: Int) -> String {
            let members = #""model":"m","id":"1","fields":{"t":"\#(String(repeating: "x", count: size))"}"#
            let event = EventText.sent("insert", "6f1c0000-0000-4000-8000-000000000001", 0, members)
            return #"{"events":[\#(event.text)]}"#
        }
        for (size, status) in [(5_000, 413), (4_000, 200)] {
            let answer = try await node.ask("POST", "/v1/streams/todo/events", body: event(size))
            #expect(answer.status == status, "\(size): \(String(decoding: answer.body, as: UTF8.self))")
        }
        let large = try RawClient(port: node.port)
        try await large.send("POST /v1/streams/todo/events HTTP/1.1\r\nHost: a\r\nContent-Length: 80001\r\n\r\n")
        #expect(try await large.receiveAll().hasPrefix("HTTP/1.1 413 "))
        let long = try RawClient(port: node.port)
        try await long.send("GET /healthz HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 9_000))\r\n\r\n")
        #expect(try await long.receiveAll().hasPrefix("HTTP/1.1 431 "))
    }

    @Test("deadlines hold") func deadlinesHold() async throws {
        let folder = try TemporaryFolder(prefix: "reel-limits-")
        let words = ["--body-ms", "100", "--idle-ms", "1000"]
        let node = try NodeProcess(["gateway", "--log", "sqlite:\(folder.path)/log.sqlite"] + words, in: folder)
        let slow = try RawClient(port: node.port)
        try await slow.send("POST /v1/streams/todo/events HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{")
        let answer = try await slow.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 408 ") && answer.contains("the body took too long"), "\(answer)")
        let idle = try RawClient(port: node.port)
        try await idle.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try await idle.receiveAll().hasPrefix("HTTP/1.1 200 "), "and then its end")
    }
}
