import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the limit of connections of clients with one subject, whatever their addresses are.
@Suite struct SubjectConnectionsTests {
    private func limited(_ most: Int, _ body: (LiveGateway, KeyFile) async throws -> Void) async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.subjectConnections = most
            $0.aheadMs = 1_000_000
            $0.node.tokens = keys.gate
        } _: { live in
            try await body(live, keys)
        }
    }

    private func hello(_ live: LiveGateway, _ token: String) async throws -> TestSocket {
        let socket = try await live.open()
        socket.send(.hello(.init(client: "test/1", token: token)))
        return socket
    }

    private func isWelcome(_ socket: TestSocket) async throws {
        _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
    }

    @Test("a subject at its socket limit receives a retry time, and other subjects connect")
    func limitsSubjectSockets() async throws {
        try await limited(2) { live, keys in
            let ann = try keys.token("ann", publish: "*")
            let first = try await hello(live, ann)
            try await isWelcome(first)
            // This is another token of the same subject.
            try await isWelcome(try await hello(live, keys.token("ann", publish: "a")))
            let third = try await hello(live, ann)
            let error = try await third.nextError().error
            #expect(error.code == .overloaded && error.retryMs == 5_000)
            #expect(try await third.closeCode() == 1013)
            try await isWelcome(try await hello(live, keys.token("bob", publish: "*")))
            #expect(try await live.metric(#"reel_limited_total{limit="connections_per_subject"}"#) == 1)
            #expect(try await live.metric(#"reel_gateway_closed_total{reason="limit"}"#) == 1)

            first.close()
            try await eventually("the place is free") {
                let socket = try await hello(live, ann)
                let frame = try await socket.next { _ in true }
                if case .welcome = frame.body { return true }
                return false
            }
        }
    }

    @Test("event streams and long polls take places of the subject too, and give them back")
    func waitingRequests() async throws {
        try await limited(2) { live, keys in
            let token = try keys.token("ann", publish: "*")
            let target = "/v1/streams/todo/events"
            func client(_ target: String, accept: String = "*/*") throws -> RawSocket {
                let client = try RawSocket(live.gateway.address)
                client.breaksOff()
                #expect(client.send("GET \(target) HTTP/1.1\r\nHost: a\r\nAccept: \(accept)\r\n"))
                #expect(client.send("Authorization: Bearer \(token)\r\n\r\n"))
                return client
            }
            func status(_ target: String) async throws -> Int {
                try await live.ask("GET", target, headers: ["authorization": "Bearer \(token)"]).status
            }
            var stream: RawSocket? = try client(target, accept: "text/event-stream")
            var poll: RawSocket? = try client(target + "?wait=900")
            try await eventually("both wait") { try await live.metric("reel_gateway_http_subscribers") == 2 }
            let refused = try await live.ask(
                "GET",
                target + "?wait=900",
                headers: ["authorization": "Bearer \(token)"]
            )
            #expect(refused.status == 503 && refused.headers["retry-after"] == "5")
            #expect(try await status(target) == 200, "a request that does not wait takes no place")
            (stream, poll) = (nil, nil)
            try await eventually("both places are free") {
                try await live.metric("reel_gateway_http_subscribers") == 0
            }
            stream = try client(target, accept: "text/event-stream")
            poll = try client(target + "?wait=900")
            try await eventually("both wait again") { try await live.metric("reel_gateway_http_subscribers") == 2 }
            withExtendedLifetime((stream, poll)) {}
        }
    }

    @Test("a long poll whose client left before it was admitted gives its place back")
    func leftEarly() async throws {
        try await limited(1) { live, keys in
            let token = try keys.token("ann", publish: "*")
            let target = "/v1/streams/todo/events"
            func poll(after: Seq) async throws -> Int {
                let target = "\(target)?after=\(after)&epoch=\(live.log.epoch)&wait=1"
                return try await live.ask("GET", target, headers: ["authorization": "Bearer \(token)"]).status
            }
            var client: RawSocket?
            // The log is empty, so the client's poll waits for seq 0 and holds the only place, unless the other poll
            // comes first.
            try await eventually("the place is taken") {
                let socket = try RawSocket(live.gateway.address)
                socket.breaksOff()
                socket.send("GET \(target)?after=0&epoch=\(live.log.epoch)&wait=900 HTTP/1.1\r\nHost: a\r\n")
                socket.send("Authorization: Bearer \(token)\r\n\r\n")
                client = socket
                return try await poll(after: -1) == 503
            }
            #expect(client != nil)
            client = nil
            try await eventually("the connection is gone") { try await live.metric("reel_node_connections") == 1 }
            let event = try await live.ask(
                "POST",
                target,
                body: #"{"events":[{"type":"noop"}]}"#,
                headers: ["authorization": "Bearer \(token)"]
            )
            #expect(event.status == 200)
            try await eventually("the place is free") { try await poll(after: -1) == 200 }
        }
    }
}
