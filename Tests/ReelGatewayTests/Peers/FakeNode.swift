import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// A snapshot node that gives every question the same answer, or never answers.
final class FakeNode: Sendable {
    private let loop: EventLoop
    private let server: LoopBound<(HTTPServer, Handler)>
    private let address: SocketAddress

    private final class Handler: HTTPHandler {
        let answer: HTTPResponse?
        var asked: [HTTPExchange] = []
        var broken = 0

        init(_ answer: HTTPResponse?) { self.answer = answer }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            asked.append(exchange)
            exchange.broken = { [self] in broken += 1 }
            if let answer { exchange.respond(answer) }
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    /// Creates a node that gives this answer; with nil it never answers.
    init(_ answer: HTTPResponse?) throws {
        let loop = try EventLoop()
        self.loop = loop
        (server, address) = try loop.sync {
            let handler = Handler(answer)
            let server = HTTPServer(on: loop, .patient, handler: handler)
            let address = try server.listen(on: try SocketAddress("127.0.0.1", port: 0))
            return (LoopBound((server, handler), on: loop), address)
        }
    }

    deinit {
        loop.stop()
        loop.join()
    }

    /// The number of questions that the node has received.
    var asked: Int { get throws { try loop.sync { [server] in server.value.1.asked.count } } }

    /// Returns the number of questions that their client has cancelled. It writes to each, since a node notices a
    /// closed connection only at a write.
    func broken() throws -> Int {
        try loop.sync { [server] in
            for exchange in server.value.1.asked {
                exchange.start(status: 200, headers: [:])
                exchange.write(Array("late".utf8))
            }
            return server.value.1.broken
        }
    }

    /// Returns the announcement of this node, with the seq to which it has folded the first partition.
    func announcement(as id: String, head: Seq? = nil) -> NodeAnnouncement {
        NodeAnnouncement(
            id: id,
            role: "snapshot",
            url: "http://\(address)",
            advertised: nil,
            build: "0",
            positions: head.map { [.init(partition: 0, seq: $0)] } ?? [],
            atMs: WallClock.nowMs()
        )
    }
}
