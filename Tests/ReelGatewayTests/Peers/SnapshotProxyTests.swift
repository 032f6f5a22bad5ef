import EventLogConformance
import NodeTestSupport
import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a gateway that forwards questions to slow nodes, for clients that do not wait.
@Suite(.timeLimit(.minutes(15))) struct SnapshotProxyTests {
    private let site = Site(high: 1, low: 1)
    private let snapshot = "/v1/streams/todo/snapshot"

    /// Snapshot nodes that answer only when the test tells them to.
    private final class HeldNodes: Sendable {
        private let loop: EventLoop
        private let nodes: LoopBound<Handler>
        private let servers: LoopBound<[HTTPServer]>

        private final class Handler: HTTPHandler {
            var asked: [HTTPExchange] = []
            var broken = 0

            func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
                asked.append(exchange)
                exchange.broken = { [self] in broken += 1 }
            }

            func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
            func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
        }

        /// Starts `count` nodes and announces them in the log.
        init(_ count: Int, in log: MemoryLog) throws {
            let loop = try EventLoop()
            self.loop = loop
            let addresses: [SocketAddress]
            (nodes, servers, addresses) = try loop.sync {
                let handler = Handler()
                let servers = (0..<count).map { _ in HTTPServer(on: loop, .patient, handler: handler) }
                let addresses = try servers.map { try $0.listen(on: try SocketAddress("127.0.0.1", port: 0)) }
                return (LoopBound(handler, on: loop), LoopBound(servers, on: loop), addresses)
            }
            for address in addresses {
                try log.announce(
                    NodeAnnouncement(
                        id: "node-\(address.port)",
                        role: "snapshot",
                        url: "http://\(address)",
                        advertised: nil,
                        build: "0",
                        positions: [],
                        atMs: WallClock.nowMs()
                    )
                )
            }
        }

        deinit {
            loop.stop()
            loop.join()
        }

        /// The number of questions that the nodes have received.
        var asked: Int { get throws { try onNodes { $0.asked.count } } }
        /// The number of questions that the gateway has cancelled.
        var broken: Int { get throws { try onNodes { $0.broken } } }

        /// Begins the answers to all questions received so far.
        func start(_ status: Int) throws {
            let type = status == 200 ? "application/x-ndjson" : "application/problem+json"
            try onNodes { handler in
                for exchange in handler.asked { exchange.start(status: status, headers: ["content-type": type]) }
            }
        }

        /// Continues the answers with this text.
        func go(on text: String) throws {
            try onNodes { handler in for exchange in handler.asked { exchange.write(Array(text.utf8)) } }
        }

        /// Continues the answers with this text and ends them.
        func end(_ text: String) throws {
            try go(on: text)
            try onNodes { handler in for exchange in handler.asked { exchange.end() } }
        }

        private func onNodes<R: Sendable>(_ body: @escaping @Sendable (Handler) -> R) throws -> R {
            try loop.sync { [nodes] in body(nodes.value) }
        }
    }

    private func with(
        nodes count: Int,
        _ change: (inout GatewaySettings) -> Void = { _ in },
        _ body: (LiveGateway, HeldNodes, MemoryLog) async throws -> Void
    ) async throws {
        let log = try MemoryLog(partitions: 1)
        let nodes = try HeldNodes(count, in: log)
        try await LiveGateway.with(
            log,
            {
                $0.node.announceMs = 20
                ($0.peerMs, $0.peerHeadMs) = (600_000, 600_000)
                change(&$0)
            }
        ) { live in
            try await eventually("the gateway knows them") {
                let known = String(decoding: try await live.get("/v1/cluster").body, as: UTF8.self)
                return known.matches(of: /node-/).count == count
            }
            try await body(live, nodes, log)
        }
    }

    /// Sends a request and resets the connection after the body. Returns once the gateway has noticed. A client that
    /// only ends its side could still read.
    private func breakOff(_ live: LiveGateway, _ request: String, _ body: () async throws -> Void) async throws {
        var client: RawSocket? = try RawSocket(live.gateway.address)
        #expect(client?.send(request) == true)
        try await body()
        client?.breaksOff()
        client = nil
        try await eventually("the client has gone") { try await live.metric("reel_node_connections") == 1 }
    }

    @Test("the gateway cancels the request of a disconnected client and asks no other node", arguments: [200, 503])
    func cancelsForDisconnectedClient(_ status: Int) async throws {
        try await with(nodes: 2) { live, nodes, _ in
            try await breakOff(live, "GET \(snapshot) HTTP/1.1\r\nHost: a\r\n\r\n") {
                try await eventually("the first node is asked") { try nodes.asked == 1 }
            }
            try nodes.start(status)
            // A node notices the cancelled request at its next write.
            try await eventually("it is given up") {
                try nodes.go(on: "more")
                return try nodes.broken == 1
            }
            let next = try live.reader(snapshot)
            try await eventually("the next question comes") { try nodes.asked > 1 }
            try nodes.start(200)
            try nodes.end("whole")
            try await eventually("the next one has its answer") { next.hasEnded }
            #expect(try nodes.asked == 2 && next.text == "whole")
        }
    }

    @Test("the gateway asks no snapshot node for a client that disconnects before its ack") func asksNothingBeforeAck()
        async throws
    {
        try await with(nodes: 1) { live, nodes, log in
            log.onAppend { _, _ in .late }
            let event = String(decoding: Sent.insert(site, 0, "a"), as: UTF8.self)
            let body = #"{"epoch":"\#(log.epoch)","after":-1,"events":[\#(event)]}"#
            let head = "POST /v1/streams/todo/sync HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            try await breakOff(live, head + body) { try await live.log(holds: 0, in: 0) }
            log.answerLate()
            try await eventually("it is durable") { try await live.metric("reel_gateway_acks_total") == 1 }
            let next = try live.reader(snapshot)
            try await eventually("a question comes") { try nodes.asked > 0 }
            try nodes.start(200)
            try nodes.end("whole")
            try await eventually("it has its answer") { next.hasEnded }
            #expect(try nodes.asked == 1, "that of who waits")
        }
    }

    @Test("a node that has begun to answer may pause for longer than one that has not") func aNodeThatHas() async throws
    {
        let headMs: Int64 = 500
        try await with(nodes: 2, { $0.peerHeadMs = headMs }) { live, nodes, _ in
            let reader = try live.reader(snapshot)
            try await eventually("the head") {
                try nodes.start(200)
                return reader.head != nil
            }
            // The test checks that silence after the head is allowed, so it must wait.
            try await Task.sleep(for: .milliseconds(2 * headMs))
            try nodes.end("whole")
            try await eventually("an end") { reader.hasEnded || reader.failure != nil }
            #expect(reader.text == "whole" && reader.failure == nil)
        }
    }
}
