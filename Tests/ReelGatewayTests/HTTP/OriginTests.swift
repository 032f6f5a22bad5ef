import NodeTestSupport
import ReelCore
import ReelLog
import ReelNode
import Testing

@testable import ReelGateway
@testable import ReelNet

/// Tests which pages in browsers may use a node, and the answers that they get.
@Suite struct OriginTests {
    private let app = "https://app.example"

    @Test("a foreign page gets nothing unless it is allowed") func aForeignPageGets() async throws {
        try await LiveGateway.with(MemoryLog()) {
            $0.node.allowedOrigins = [app]
            $0.echoes = true
        } _: { live in
            let own = "http://\(live.gateway.address)"
            for (origin, status) in [(app, 200), (own, 200), ("https://evil.example", 403), ("null", 403)] {
                for target in ["/v1/streams/todo/head", "/v1/streams/todo/events?wait=0", "/healthz"] {
                    let answer = try await live.ask("GET", target, headers: ["origin": origin])
                    #expect(answer.status == status, "\(origin) \(target)")
                    #expect(answer.headers["access-control-allow-origin"] == (origin == app ? app : nil))
                    if status == 200 { #expect(answer.headers.all("vary").contains("origin")) }
                }
                if status == 200 {
                    try await live.open(["origin": origin]).close()
                } else {
                    for path in ["/v1/socket", "/debug/echo"] {
                        #expect(try await live.refusedUpgrade(path, ["origin": origin]) == 403)
                    }
                }
            }
            try await live.open().close()
            #expect(try await live.ask("GET", "/nowhere", headers: ["origin": app]).headers.all("vary") == ["origin"])
        }
    }

    @Test("a preflight is answered with what a page may send") func aPreflightIsAnswered() async throws {
        try await LiveGateway.with(MemoryLog()) {
            $0.node.allowedOrigins = ["*"]
        } _: { live in
            let answer = try await live.ask(
                "OPTIONS",
                "/v1/streams/todo/events",
                headers: ["origin": app, "access-control-request-method": "POST"]
            )
            #expect(answer.status == 204 && answer.body.isEmpty)
            #expect(answer.headers["access-control-allow-origin"] == "*")
            #expect(answer.headers["access-control-allow-methods"] == "GET, POST")
            #expect(answer.headers.tokens("access-control-allow-headers").contains("authorization"))
            #expect(try await live.ask("OPTIONS", "/healthz").status == 405, "without a page it is no preflight")
        }
    }

    @Test("a page that is not allowed cannot publish") func aPageThatIs() async throws {
        try await LiveGateway.with { live in
            let event = String(decoding: Sent.insert(Site(high: 1, low: 1), 0, "a"), as: UTF8.self)
            let answer = try await live.ask(
                "POST",
                "/v1/streams/todo/events",
                body: #"{"events":[\#(event)]}"#,
                headers: ["origin": "https://evil.example"]
            )
            #expect(answer.status == 403)
            for partition in 0..<live.log.partitions { #expect(try live.log.bounds(partition).last == -1) }
        }
    }

    /// A foreign name may resolve to this machine. The node does not treat pages of that name as its own; on the
    /// loopback it refuses every request with that name.
    @Test(
        "a strangers name is not the nodes own",
        arguments: [
            // The requested host, the status on the loopback, and the status elsewhere for a page of that host.
            ("evil.example:7350", 403, 403), ("EVIL.example.", 403, 403), ("127.0.0.1.evil.example", 403, 403),
            ("127.0.0.1:7350", 200, 200), ("[::1]:7350", 200, 200), ("10.1.2.3", 200, 200),
            ("localhost:7350", 200, 200),
            ("my.localhost", 200, 200), ("gateway-1", 200, 200), ("app.example", 200, 200),
            ("Reel.example:7350", 200, 200),
        ]
    )
    func aStrangersNameIs(host: String, onTheLoopback: Int, fromOutside: Int) throws {
        var settings = NodeSettings()
        settings.allowedOrigins = [app]
        settings.advertise = "https://reel.example/x"
        func status(_ fields: HTTPHeaders = [:]) -> Int {
            var headers: HTTPHeaders = ["host": host]
            for field in fields.fields { headers.add(field.name, field.value) }
            let head = HTTPRequestHead(method: "GET", target: "/", host: host, headers: headers, isOld: false)
            do throws(Problem) { _ = try OriginRules(settings).fields(for: head) } catch { return error.status }
            return 200
        }
        let own: HTTPHeaders = ["origin": "http://\(host)"]
        #expect(status() == onTheLoopback && status(own) == onTheLoopback)
        settings.listen = "0.0.0.0:7350"
        #expect(status() == 200, "other programs may know it by any name")
        #expect(status(own) == fromOutside)
    }

    /// The `sec-fetch` fields of a request (site, mode, destination), and the statuses of GET
    /// and POST on a node without keys.
    @Test(
        "the gateway refuses cross-site requests without an origin, except links to documents",
        arguments: [
            ("cross-site", "no-cors", "image", 403, 403), ("cross-site", "no-cors", "script", 403, 403),
            ("cross-site", "no-cors", "empty", 403, 403), ("cross-site", "navigate", "document", 200, 403),
            ("cross-site", "navigate", "iframe", 403, 403), ("cross-site", "websocket", "websocket", 403, 403),
            ("same-origin", "no-cors", "image", 200, 200), ("same-site", "no-cors", "image", 200, 200),
            ("none", "navigate", "document", 200, 200),
        ]
    )
    func foreignPages(site: String, mode: String, destination: String, get: Int, post: Int) throws {
        var settings = NodeSettings()
        func status(_ method: String, _ origin: String? = nil) -> Int {
            var headers: HTTPHeaders = ["sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination]
            if let origin { headers.add("origin", origin) }
            let host = "127.0.0.1:7350"
            let head = HTTPRequestHead(method: method, target: "/", host: host, headers: headers, isOld: false)
            do throws(Problem) { _ = try OriginRules(settings).fields(for: head) } catch { return error.status }
            return 200
        }
        #expect(status("GET") == get && status("POST") == post)
        settings.allowedOrigins = [app]
        #expect(status("GET", app) == 200 && status("POST", app) == 200, "an allowed page says its origin")
        #expect(status("GET") == get)
        settings.allowedOrigins = ["*"]
        #expect(status("GET") == 200 && status("POST") == 200, "all pages may use it")
    }

    @Test("every answer forbids to guess its type, and to load it from a page of another origin")
    func fields() async throws {
        try await LiveGateway.with { live in
            for target in ["/healthz", "/metrics", "/nowhere", "/v1/streams/todo/head", "/v1/streams/todo/snapshot"] {
                let answer = try await live.get(target)
                #expect(answer.headers.all("x-content-type-options") == ["nosniff"], "\(target)")
                #expect(answer.headers.all("cross-origin-resource-policy") == ["same-origin"], "\(target)")
            }
            let refused = try RawSocket(live.gateway.address)
            #expect(refused.send("NOTHING / HTTP/1.1\r\nHost: a\r\n\r\n"))
            #expect(refused.receiveAll().contains("x-content-type-options: nosniff"))
        }
    }

    @Test(
        "the gateway recognizes an origin as browsers send it",
        arguments: ["https://app.example", "http://localhost:3000", "*", "http://[::1]:80"]
    )
    func recognizesBrowserOrigin(text: String) { #expect(OriginRules.isOrigin(text)) }

    @Test(
        "other texts are none",
        arguments: ["", "app.example", "https://", "https://a/", "https://A", "https://a b", "ftp://a", "https://*"]
    )
    func otherTextsAreNone(text: String) { #expect(!OriginRules.isOrigin(text)) }
}

extension LiveGateway {
    /// Returns the status with which the gateway refuses a WebSocket handshake.
    func refusedUpgrade(_ path: String, _ headers: HTTPHeaders) async throws -> Int {
        var fields: HTTPHeaders = [
            "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "sec-websocket-version": "13", "sec-websocket-protocol": "reel.v1",
        ]
        for field in headers.fields { fields.add(field.name, field.value) }
        return try await ask("GET", path, headers: fields).status
    }
}
