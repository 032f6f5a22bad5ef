import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that every refusal is counted and leaves an audit line, and that no client can create a label.
@Suite(.timeLimit(.minutes(10))) struct RefusalTests {
    private let todo = StreamName("todo")!
    private let other = StreamName("other")!
    private let site = Site(high: 1, low: 1)

    @Test("a refused handshake leaves an audit line and is counted, and so is one that is taken")
    func handshakes() async throws {
        try await guarded { live, keys in
            let socket = try await live.open(bearer(try keys.token(publish: "*")))
            #expect(try await live.metric(requests("/v1/socket", 101)) == 1)
            _ = try await status(live, handshake("Authorization: Bearer nonsense\r\n"))
            try await live.logLines("refused", has: 1)
            let line = live.logLines("refused")[0]
            for part in ["level=audit", "code=unauthorized", "client=127.0.0.1", "route=/v1/socket "] {
                #expect(line.contains(part), "\(part) in \(line)")
            }
            #expect(try await live.metric(requests("/v1/socket", 401)) == 1)
            // The path has no WebSocket route, so the refusal is not one for a missing right.
            #expect(try await status(live, handshake("", path: "/nowhere")) == 404)
            #expect(try await live.metric(requests("none", 404)) == 1)
            #expect(live.logLines("refused").count == 1)
            socket.close()
        }
    }

    @Test("frames that a token does not give leave an audit line each, ten a second at most")
    func frames() async throws {
        try await guarded { live, keys in
            let socket = try await live.open()
            let token = try keys.token("bob", read: "todo", publish: "todo")
            socket.send(.hello(.init(client: "test/1", token: token)))
            _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
            socket.send(.subscribe(.init(stream: other, position: .now)))
            #expect(try await socket.nextError().error.code == .forbidden)
            socket.send(.fetch(.init(stream: other, epoch: live.log.epoch, ranges: [0...0])))
            #expect(try await socket.nextError().error.code == .forbidden)
            socket.send(.publish(.init(stream: other, events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextNack().error.code == .forbidden)
            socket.send(.renew(token: try keys.token("ann", publish: "*")))
            #expect(try await socket.nextError().error.code == .forbidden)
            let lines = live.logLines("refused")
            #expect(lines.count == 4)
            for frame in ["subscribe", "fetch", "publish", "renew"] {
                let line = lines.first { $0.contains(#"route="/v1/socket \#(frame)""#) } ?? ""
                #expect(line.contains("subject=bob") && line.contains("code=forbidden"), "\(frame): \(lines)")
            }
            for _ in 0..<2_000 { socket.send(.subscribe(.init(stream: other, position: .now))) }
            let begun = ContinuousClock.now
            for _ in 0..<2_000 { #expect(try await socket.nextError().error.code == .forbidden) }
            let seconds = Int((ContinuousClock.now - begun).components.seconds)
            #expect(live.logLines("refused").count <= 10 * (seconds + 3))
        }
    }

    @Test("a large body that is refused by its head leaves an audit line with the subject, and is counted")
    func heads() async throws {
        try await guarded { live, keys in
            let weak = try keys.token("bob", read: "todo", publish: "todo")
            let request =
                "POST /v1/streams/other/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(weak)\r\n"
                + "Content-Length: 900000\r\n\r\n"
            #expect(try await status(live, request) == 403)
            let line = live.logLines("refused").first ?? ""
            #expect(line.contains("subject=bob") && line.contains("client=127.0.0.1"), "\(line)")
            #expect(line.contains("route=/v1/streams/{stream}/events "), "\(line)")
            #expect(try await live.metric(requests("/v1/streams/{stream}/events", 403)) == 1)
        }
    }

    @Test("the gateway also counts malformed requests and connections beyond the limit")
    func malformed() async throws {
        try await LiveGateway.with {
            $0.node.connections = 2
            $0.node.addressConnections = 0
        } _: { live in
            #expect(try await status(live, "nonsense\r\n\r\n") == 400)
            #expect(try await live.metric(requests("none", 400)) == 1)
            let held = try (0..<2).map { _ in try RawSocket(live.gateway.address) }
            for client in held { #expect(client.send("GET / HTTP/1.1\r\n")) }
            try await eventually("all connections are taken") {
                try await live.metric("reel_node_connections") == 2
            }
            #expect(try await status(live, "GET /v1/streams/a/head HTTP/1.1\r\nHost: a\r\n\r\n") == 503)
            #expect(try await live.metric(requests("none", 503)) ?? 0 >= 1)
            withExtendedLifetime(held) {}
        }
    }

    @Test("no method, path, header or stream of a client becomes a label")
    func labels() async throws {
        try await guarded { live, keys in
            func labels() async throws -> Set<String> {
                let lines = live.metricsText.split(separator: "\n").filter { !$0.hasPrefix("#") }
                return Set(lines.compactMap { $0.split(separator: " ").first.map(String.init) })
            }
            let token = try keys.token("su\"bj", publish: "*")
            // Requests all statuses of these routes, with ordinary names.
            func round(_ name: String, _ method: String) async throws {
                for target in ["/v1/streams/\(name)/head", "/\(name)", "/v1/\(name)/events", "/v1/streams/\(name)"] {
                    for (method, query) in [("GET", ""), (method, ""), ("GET", "?\(name)=\(name)")] {
                        _ = try await status(
                            live,
                            "\(method) \(target)\(query) HTTP/1.1\r\nHost: \(name)\r\nUser-Agent: \(name)\r\n"
                                + "Authorization: Bearer \(token)\r\nConnection: close\r\n\r\n"
                        )
                    }
                }
                _ = try await status(live, handshake("X-\(name): \(name)\r\n", path: "/\(name)"))
                _ = try await status(live, "\(method)\(name)\r\n\r\n")
            }
            try await round("plain", "PLAIN")
            let before = try await labels()
            for number in 0..<20 { try await round("strange\(number)", "STRANGE\(number)") }
            let new = try await labels().subtracting(before)
            #expect(new.isEmpty, "\(new)")
            #expect(before.count > 100)
        }
    }

    @Test("the log lines of a live node escape control characters of a subject")
    func escapesSubjects() async throws {
        try await guarded { live, keys in
            // A node that accepts foreign tokens may get any subject. A token whose subject has
            // control characters is invalid.
            let controls = String(repeating: "\u{1B}", count: 128)
            for subject in [controls, String(repeating: "\u{202E}", count: 42) + "\"\\"] {
                let token = try keys.token(subject, read: "todo", publish: "todo")
                let answer = try await live.ask("GET", "/v1/streams/other/head", headers: bearer(token))
                #expect(answer.status == 401 || answer.status == 403)
            }
            try await live.logLines("refused", has: 2)
            for line in live.journalLines {
                let isPlain = line.dropLast().unicodeScalars.allSatisfy { !PrintableText.isControl($0) }
                #expect(isPlain, "\(line.debugDescription)")
            }
        }
    }

    @Test("the gateway accepts a Forwarded header only from a trusted proxy", arguments: [true, false])
    func forwarded(isTrusted: Bool) async throws {
        let keys = try KeyFile()
        try await LiveGateway.with {
            $0.node.tokens = keys.gate
            if isTrusted { $0.node.trustedProxies = try! AddressRanges(parsing: "127.0.0.1") }
        } _: { live in
            let headers: HTTPHeaders = ["forwarded": "for=192.0.2.1"]
            #expect(try await live.ask("GET", "/v1/streams/todo/head", headers: headers).status == 401)
            _ = try await status(live, handshake("Forwarded: for=192.0.2.1\r\nAuthorization: Bearer x\r\n"))
            try await live.logLines("refused", has: 2)
            let client = isTrusted ? "client=192.0.2.1 " : "client=127.0.0.1 "
            #expect(live.logLines("refused").allSatisfy { $0.contains(client) }, "\(live.logLines("refused"))")
        }
    }

    // MARK: Parts

    private func requests(_ route: String, _ code: Int) -> String {
        #"reel_http_requests_total{code="\#(code)",route="\#(route)"}"#
    }

    private func handshake(_ fields: String, path: String = "/v1/socket") -> String {
        "GET \(path) HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            + "Sec-WebSocket-Protocol: reel.v1\r\n\(fields)\r\n"
    }

    /// Sends a request on a connection of its own and returns the status of the answer.
    private func status(_ live: LiveGateway, _ request: String) async throws -> Int {
        let client = try RawSocket(live.gateway.address)
        #expect(client.send(request))
        return Int(client.receiveAll().dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0
    }

    private func guarded(_ body: (LiveGateway, KeyFile) async throws -> Void) async throws {
        let keys = try KeyFile()
        let settings = { (settings: inout GatewaySettings) in
            settings.node.tokens = keys.gate
            settings.helloMs = 600_000
            settings.errors = 100
        }
        try await LiveGateway.with(nil, settings) { live in try await body(live, keys) }
    }

    private func bearer(_ token: String) -> HTTPHeaders { ["authorization": "Bearer \(token)"] }
}
