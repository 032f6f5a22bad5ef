import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the operator's own port, and the right `admin` on a node with keys.
@Suite(.timeLimit(.minutes(10))) struct AdminPortTests {
    private static let moved = ["/metrics", "/v1/cluster"]

    @Test("with an operator's port, its paths are answered there and nowhere else")
    func moved() async throws {
        try await LiveGateway.with(try NoticedLog()) {
            $0.node.adminListen = "127.0.0.1:0"
        } _: { live in
            for target in Self.moved {
                let outside = try await live.get(target)
                #expect(outside.status == 404 && text(outside).contains("only on the operator's port"), "\(target)")
                #expect(try await live.askAdmin(target).status == 200, "\(target)")
            }
            #expect(try await text(live.askAdmin("/metrics")).contains("reel_node_connections "))
            #expect(try await text(live.askAdmin("/v1/cluster")).contains(#""node":"\#(live.gateway.context.nodeID)""#))
            #expect(try await live.get("/healthz").status == 200)
            let (short, whole) = (try await live.get("/readyz"), try await live.askAdmin("/readyz"))
            #expect(short.status == 200 && !text(short).contains("/secret/path"), "\(text(short))")
            #expect(whole.status == 200 && text(whole).contains("/secret/path"), "\(text(whole))")

            for target in ["/v1/streams/todo/head", "/openapi.yaml", "/v1/streams", "/v1/sites", "/nowhere"] {
                let refused = try await live.askAdmin(target)
                #expect(refused.status == 404 && text(refused).contains("the operator's port"), "\(target)")
            }
            #expect(try await live.askAdmin("/metrics", method: "POST").status == 405)
        }
    }

    @Test("without one, a node with keys shows an operator's paths for the right `admin` for all streams alone")
    func rights() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(try NoticedLog()) {
            $0.node.tokens = keys.gate
        } _: { live in
            for target in Self.moved {
                func status(_ token: String?) async throws -> Int {
                    try await live.ask("GET", target, headers: bearer(token)).status
                }
                #expect(try await status(nil) == 401, "\(target)")
                #expect(try await status(keys.token(publish: "*", inspect: "*")) == 403, "\(target)")
                #expect(try await status(keys.token(publish: "*", admin: "todo-*")) == 403, "\(target)")
                #expect(try await status(keys.token(publish: "*", admin: "*")) == 200, "\(target)")
            }
            try await live.logLines("refused", has: 6)
            let refused = live.logLines("refused").filter { $0.contains("code=forbidden") }
            #expect(refused.count == 4 && refused.allSatisfy { $0.contains("subject=ann") }, "\(refused)")
            #expect(try await live.get("/healthz").status == 200)
            // The test runs on the gateway's machine, so `/readyz` shows the file's path.
            #expect(try await text(live.get("/readyz")).contains("/secret/path"))
        }
    }

    @Test("on the loopback the operator's port asks for no token, though the node has keys")
    func loopback() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with {
            $0.node.tokens = keys.gate
            $0.node.adminListen = "127.0.0.1:0"
        } _: { live in
            for target in Self.moved {
                let answer = try await live.askAdmin(target)
                #expect(answer.status == 200, "\(target)")
            }
        }
    }

    @Test("beyond the loopback a node with keys wants the right `admin` at the operator's port too")
    func beyondLoopback() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(try NoticedLog()) {
            $0.node.tokens = keys.gate
            $0.node.adminListen = "0.0.0.0:0"
        } _: { live in
            let (reader, admin) = (try keys.token(publish: "*"), try keys.token(publish: "x", admin: "*"))
            for target in Self.moved {
                #expect(try await live.askAdmin(target).status == 401, "\(target)")
                #expect(try await live.askAdmin(target, bearer(reader)).status == 403, "\(target)")
                #expect(try await live.askAdmin(target, bearer(admin)).status == 200, "\(target)")
            }
            #expect(try await live.askAdmin("/healthz").status == 200)
            for headers in [bearer(nil), bearer(reader), bearer("nonsense")] {
                let ready = try await live.askAdmin("/readyz", headers)
                #expect(ready.status == 200 && !text(ready).contains("/secret/path"))
            }
            #expect(try await text(live.askAdmin("/readyz", bearer(admin))).contains("/secret/path"))
        }
    }

    @Test("the operator's port answers while clients hold all connections, and has a limit of its own")
    func fullOfClients() async throws {
        try await LiveGateway.with {
            $0.node.connections = 2
            $0.node.addressConnections = 0
            $0.node.adminListen = "127.0.0.1:0"
        } _: { live in
            // One of the two connections is the one over which the test has waited for the start.
            let others = try (0..<2).map { _ in try RawSocket(live.gateway.address) }
            for other in others { #expect(other.send("GET /v1/streams/todo/head HTTP/1.1\r\n")) }
            try await eventually("all connections are taken") {
                try await text(live.askAdmin("/metrics")).contains("\nreel_node_connections 2\n")
            }
            #expect(try await live.askAdmin("/v1/cluster").status == 200)
            let admin = try #require(live.gateway.admin).address
            let idle = try (0..<64).map { _ in try RawSocket(admin) }
            let late = try RawSocket(admin)
            #expect(late.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))
            #expect(late.receiveAll().hasPrefix("HTTP/1.1 503"))
            let check = try RawSocket(admin)
            #expect(check.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
            #expect(check.receiveAll().hasPrefix("HTTP/1.1 200"))
            withExtendedLifetime((others, idle)) {}
        }
    }

    @Test("no page of the web reads the operator's port, by whatever name it was led there")
    func pages() async throws {
        try await LiveGateway.with {
            $0.node.allowedOrigins = ["*"]
            $0.node.adminListen = "127.0.0.1:0"
        } _: { live in
            #expect(try await live.askAdmin("/metrics", ["origin": "https://app.example"]).status == 403)
            let client = try RawSocket(try #require(live.gateway.admin).address)
            #expect(client.send("GET /metrics HTTP/1.1\r\nHost: rebound.example:80\r\nConnection: close\r\n\r\n"))
            #expect(client.receiveAll().hasPrefix("HTTP/1.1 403"))
        }
    }

    @Test("the operator's port is still there while the node sends its clients away, and gone at its end")
    func closesLast() async throws {
        let live = try LiveGateway(MemoryLog()) { $0.node.adminListen = "127.0.0.1:0" }
        try await live.started()
        let admin = try #require(live.gateway.admin).address
        let client = try await live.connect()
        client.pause()
        live.gateway.end.begin()
        try await eventually("it leaves") { try await text(live.askAdmin("/readyz")).contains(#""leaving":true"#) }
        await live.end()
        try admin.checkThatItIsFree()
    }

    @Test("the URL of the operator's port is announced where others reach it")
    func announced() throws {
        let settings = NodeSettings()
        func url(_ admin: String, _ node: String) throws -> String? {
            settings.adminURL(try SocketAddress(parsing: admin), of: node)
        }
        #expect(try url("127.0.0.1:7360", "http://127.0.0.1:7350") == "http://127.0.0.1:7360")
        #expect(try url("127.0.0.1:7360", "http://10.0.0.7:7350") == nil)
        #expect(try url("0.0.0.0:7360", "http://gateway-1:7350") == "http://gateway-1:7360")
        #expect(try url("[::]:7360", "http://[fd00::1]:7350") == "http://[fd00::1]:7360")
        #expect(try url("10.0.0.8:7360", "http://gateway-1:7350") == "http://10.0.0.8:7360")
        #expect(try url("10.0.0.8:7360", "nonsense /") == nil)
    }

    private func text(_ answer: HTTPResponse) -> String { String(decoding: answer.body, as: UTF8.self) }

    private func bearer(_ token: String?) -> HTTPHeaders {
        token.map { ["authorization": "Bearer \($0)"] } ?? HTTPHeaders()
    }
}

/// A log whose notice for operators names a file.
private final class NoticedLog: ForwardingLog {
    let log: any EventLog
    let notice: String? = "/secret/path is not as it must be"

    init() throws { log = try MemoryLog() }
}

extension LiveGateway {
    /// Sends a request from the loopback to the operator's port.
    func askAdmin(
        _ target: String,
        _ headers: HTTPHeaders = HTTPHeaders(),
        method: String = "GET"
    ) async throws -> HTTPResponse {
        let port = try #require(gateway.admin).address.port
        var request = HTTPClientRequest(method, host: "127.0.0.1", port: port, target: target)
        request.headers = headers
        request.timeout = Self.patience
        return try await http.fetch(request)
    }
}
