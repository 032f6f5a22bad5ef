import Foundation
import ReelLab
import ReelNet
import TestSupport
import Testing

/// Tests the start and the end of a node.
@Suite(.timeLimit(.minutes(20))) struct LeavingTests {
    /// Starts a node of a kind.
    static func node(_ kind: String, in folder: TemporaryFolder) throws -> NodeProcess {
        switch kind {
        case "serve": try .serve(in: folder)
        case "gateway": try .gateway(in: folder)
        default: try .snapshot(in: folder)
        }
    }

    @Test("a node exits with code 0 after SIGTERM", arguments: ["serve", "gateway", "snapshot"])
    func exitsWithZero(kind: String) async throws {
        let folder = try TemporaryFolder(prefix: "reel-leaving-")
        // The node exists, so its first line was `listening on HOST:PORT`.
        let node = try Self.node(kind, in: folder)
        #expect(try await node.ask("GET", "/healthz").status == 200)
        node.process.signal(SIGTERM)
        try await eventually("its end") { node.process.hasEnded() }
        #expect(node.process.end == .exited(0), "\(node.logger)")
        #expect(try node.process.readLine(timeoutMs: 60_000) == nil, "it prints one line and no more")
    }

    /// The log was slow and accepted no events for a while.
    private struct HeldUp: Error {}

    /// Runs the body with a new node, which must then end. If the test or the node was delayed for longer than the node
    /// waits for clients, the result proves nothing. Then the body runs with another node, at most five times.
    private func withNode<Found>(
        _ kind: String,
        _ body: (NodeProcess) async throws -> Found
    ) async throws -> (found: Found, logger: String) {
        var triesLeft = 5
        while true {
            triesLeft -= 1
            let folder = try TemporaryFolder(prefix: "reel-leaving-")
            let node = try Self.node(kind, in: folder)
            do {
                let found = try await body(node)
                try await eventually("its end") { node.process.hasEnded() }
                if triesLeft > 0, node.logger.contains(#"event="drain finished" reason=limit"#) { continue }
                #expect(node.process.end == .exited(0), "\(node.logger)")
                return (found, node.logger)
            } catch {
                let isHeldUp = error is HeldUp || node.logger.contains(#"event="drain finished" reason=limit"#)
                guard triesLeft > 0, isHeldUp else { throw error }
            }
        }
    }

    @Test("a node sends goaway to its clients and closes them") func sendsGoaway() async throws {
        let (heard, _) = try await withNode("serve") { node -> (goaway: [String: Any], code: Int?) in
            let client = try await RawClient.socket(port: node.port)
            node.process.signal(SIGTERM)
            let goaway = try await client.hear("goaway")
            let code = try await client.closeCode()
            return (goaway, code)
        }
        #expect(heard.goaway["after_ms"] is Int)
        #expect(heard.goaway["nodes"] as? [String] == [])
        #expect(heard.code == 1012)
    }

    @Test("a node acks the events that it has taken before it ends") func acksBeforeEnd() async throws {
        let (code, _) = try await withNode("serve") { node -> Int? in
            let client = try await RawClient.socket(port: node.port)
            let site = "00000000-0000-4000-8000-000000000001"
            for op in 0..<50 {
                let event = EventText.sent("insert", site, op, #""model":"m","id":"\#(op)""#).text
                try await client.say(#"{"t":"publish","stream":"todo","events":[\#(event)]}"#)
            }
            // The node has read `hello` and all 50 publishes. The disk determines which of them are acked by now.
            try await eventually("that it has taken them") {
                let metrics = String(decoding: try await node.ask("GET", "/metrics").body, as: UTF8.self)
                return metrics.contains("\nreel_gateway_frames_received_total 51\n")
            }
            node.process.signal(SIGTERM)
            var last = -1
            while last < 49 {
                let ack = try await client.hear(["ack", "nack"])
                if ack["code"] as? String == "log_unavailable" { throw HeldUp() }
                last = (ack["acks"] as? [[String: Any]])?.compactMap { $0["op"] as? Int }.max() ?? last
            }
            return try await client.closeCode()
        }
        #expect(code == 1012)
    }

    @Test(
        "a signal between the nodes of two epochs ends the process in good order",
        arguments: ["gateway", "snapshot"]
    )
    func aSignalBetweenThe(kind: String) async throws {
        let folder = try TemporaryFolder(prefix: "reel-leaving-")
        let node = try Self.node(kind, in: folder)
        let log = folder.path + "/log.sqlite"
        let change = try await BuiltProgram.newEpoch(["--log", "sqlite:\(log)"])
        #expect(change.code == 0, "\(change)")
        try await eventually("that it moves on") { node.logger.contains("moving to the next epoch") }
        // While the test holds the lock, no process can open or close the log. So the process cannot start its next
        // node.
        let lock = open(log + ".lock", O_RDWR)
        defer { close(lock) }
        try #require(flock(lock, LOCK_EX) == 0)
        try await eventually("the first node's end") { node.logger.contains(#"event="drain finished""#) }
        node.process.signal(SIGTERM)
        try #require(flock(lock, LOCK_UN) == 0)
        try await eventually("its end") { node.process.hasEnded() }
        #expect(node.process.end == .exited(0), "\(node.logger)")
    }

    @Test("a node ends at once after a second signal", arguments: ["serve", "gateway", "snapshot"])
    func endsAfterSecondSignal(kind: String) async throws {
        let (client, logger) = try await withNode(kind) { node -> RawClient in
            // This client never finishes its body, so the connection stays busy. The node has read the head.
            let client = try RawClient(port: node.port)
            try await client.send("POST /v1/streams/todo/outcomes HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n")
            try await client.send("Expect: 100-continue\r\n\r\n")
            let answer = try await client.receive(until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 100 "))
            node.process.signal(SIGTERM)
            try await eventually("that it leaves") { node.logger.contains(#"event="drain started""#) }
            node.process.signal(SIGTERM)
            try await eventually("its end") { node.process.hasEnded() }
            return client
        }
        withExtendedLifetime(client) {}
        let end = #"event="drain finished" reason="told twice""#
        #expect(logger.contains(end), "not for such a client's sake: \(logger)")
    }
}
