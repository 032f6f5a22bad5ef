import Foundation
import NodeTestSupport
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests limits of clients that reach a node through HAProxy with deploy/haproxy.cfg.
@Suite(
    .enabled(if: Installed.haproxy, "haproxy is missing, so no limit was tried through it: apt-get install haproxy")
)
struct ProxyLimitTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder(prefix: "reel-proxy-") }

    /// Starts HAProxy before a node. Without `sendsAddresses`, HAProxy does not send the node the client's address.
    private func front(_ node: NodeProcess, sendsAddresses: Bool) async throws -> (
        process: ChildProcess, port: HeldPort
    ) {
        var config = try String(contentsOf: repository.appending(path: "deploy/haproxy.cfg"), encoding: .utf8)
        let line = "    default-server send-proxy-v2 check-send-proxy\n"
        #expect(config.contains(line))
        if !sendsAddresses { config = config.replacing(line, with: "") }
        // The file describes this change for a front behind another proxy.
        config = config.replacing("    bind \"${FRONT}\"\n", with: "    bind \"${FRONT}\" accept-proxy\n")
        let path = folder.path + "/haproxy.cfg"
        try config.write(toFile: path, atomically: true, encoding: .utf8)
        let ports = [try HeldPort(), try HeldPort(), try HeldPort(), try HeldPort()]
        let names = ["FRONT", "STATS", "GATEWAY_2", "GATEWAY_3"]
        let variables = zip(names, ports).map { "\($0)=127.0.0.1:\($1.number)" } + ["GATEWAY_1=127.0.0.1:\(node.port)"]
        let process = try ChildProcess(
            "/bin/bash",
            ["-c", "exec env \(variables.joined(separator: " ")) haproxy -f '\(path)'"],
            errorLog: folder.path + "/haproxy.log"
        )
        try await eventually("the front has a gateway") {
            guard let client = try? RawClient(port: ports[0].number) else { return false }
            try await client.send("PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
            return (try? await client.receive(until: "\r\n\r\n"))?.hasPrefix("HTTP/1.1 200 ") ?? false
        }
        return (process, ports[0])
    }

    /// Publishes `count` events as a client with this address, which an outer proxy names. Returns the status.
    private func publish(_ count: Int, _ port: HeldPort, from address: String, token: String? = nil) async throws
        -> String
    {
        let body = #"{"events":[\#(Array(repeating: #"{"type":"noop"}"#, count: count).joined(separator: ","))]}"#
        let client = try RawClient(port: port.number)
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        try await client.send(
            "PROXY TCP4 \(address) 192.0.2.1 1 2\r\nPOST /v1/streams/todo/events?outcome=0 HTTP/1.1\r\nHost: a\r\n"
                + "Content-Type: application/json\r\n\(authorization)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        let answer = try await client.receive(until: "\r\n\r\n")
        return String(answer.dropFirst("HTTP/1.1 ".count).prefix(3))
    }

    private func node(_ words: [String]) async throws -> NodeProcess {
        let node = try NodeProcess(["serve", "--data", folder.path + "/data"] + words, in: folder)
        try await node.becomesReady()
        return node
    }

    @Test("a node limits each address behind a trusted proxy, and all clients together behind another proxy")
    func limitsProxiedAddresses() async throws {
        for isTrusted in [true, false] {
            let words = ["--publishes-per-second", "1"] + (isTrusted ? ["--trusted-proxies", "127.0.0.1"] : [])
            let node = try await node(words)
            defer { node.process.killNow() }
            let front = try await front(node, sendsAddresses: isTrusted)
            defer { front.process.killNow() }
            // With a limit of one event per second, 500 events use up the limit for minutes.
            #expect(try await publish(500, front.port, from: "192.0.2.2") == "200")
            #expect(try await publish(1, front.port, from: "192.0.2.2") == "429")
            #expect(try await publish(1, front.port, from: "192.0.2.3") == (isTrusted ? "200" : "429"))
            let page = String(decoding: try await node.ask("GET", "/metrics").body, as: UTF8.self)
            #expect(page.contains("reel_limited_total{limit=\"publishes\"} \(isTrusted ? 1 : 2)\n"))
        }
    }

    @Test("a node that does not trust the proxy refuses its PROXY header, and the proxy has no gateway")
    func stranger() async throws {
        let node = try await node([])
        defer { node.process.killNow() }
        let client = try RawClient(port: node.port)
        try await client.send("PROXY TCP4 192.0.2.2 192.0.2.1 1 2\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = try await client.receive(until: "\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
        #expect(try await node.ask("GET", "/healthz").status == 200)
    }

    @Test("a token's subject has one limit from all addresses, and two subjects of one address have two")
    func subjects() async throws {
        let (secret, half) = (folder.path + "/secret.json", folder.path + "/public.json")
        func run(_ words: [String]) async throws -> String {
            let run = try await BuiltProgram.run(words)
            #expect(run.code == 0, "\(run)")
            return run.output
        }
        try await run(["token", "keygen"]).write(toFile: secret, atomically: true, encoding: .utf8)
        try await run(["token", "keygen", "--public", secret]).write(toFile: half, atomically: true, encoding: .utf8)
        var tokens: [String: String] = [:]
        for subject in ["ann", "bob"] {
            let words = ["token", "issue", "--jwks", secret, "--sub", subject, "--publish", "*", "--for", "3600"]
            tokens[subject] = try await run(words).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let words = ["--publishes-per-second", "1", "--trusted-proxies", "127.0.0.1", "--jwks", half]
        let node = try await node(words)
        defer { node.process.killNow() }
        let front = try await front(node, sendsAddresses: true)
        defer { front.process.killNow() }
        #expect(try await publish(500, front.port, from: "192.0.2.2", token: tokens["ann"]) == "200")
        #expect(try await publish(1, front.port, from: "192.0.2.3", token: tokens["ann"]) == "429")
        #expect(try await publish(1, front.port, from: "192.0.2.2", token: tokens["bob"]) == "200")
        #expect(try await publish(1, front.port, from: "192.0.2.2") == "401")
    }
}
