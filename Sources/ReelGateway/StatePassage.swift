import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Passes questions about state on to a snapshot node, found by what the nodes announce. One that fails before the
/// first byte of its answer is replaced by another.
final class StatePassage {
    private let client: HTTPClient
    private let announcer: Announcer
    private let tls: TLSClient?
    private let journal: Journal
    /// A node that is away is met by every request.
    private var warnings = LineLimiter(lines: 10, windowMs: 10_000)
    private var turn = 0

    /// `tls`: whom to believe where a node is asked by `https`.
    init(on loop: EventLoop, announcer: Announcer, tls: TLSClient?, journal: Journal) {
        self.tls = tls
        client = HTTPClient(on: loop)
        self.announcer = announcer
        self.journal = journal
    }

    /// Asks the next node the same, and streams its answer back.
    func pass(_ head: HTTPRequestHead, _ exchange: HTTPExchange) {
        let nodes = announcer.nodes.filter { $0.role == "snapshot" || $0.role == "serve" }
        turn += 1
        let start = nodes.isEmpty ? 0 : turn % nodes.count
        ask(Array(nodes[start...] + nodes[..<start])[...], head, exchange)
    }

    func close() {
        client.close()
    }

    private func ask(_ nodes: ArraySlice<NodeAnnouncement>, _ head: HTTPRequestHead, _ exchange: HTTPExchange) {
        guard let node = nodes.first else {
            var problem = Problem(.nodeBehind, "found no snapshot node that answers")
            problem.retryMs = 1_000
            return exchange.respond(problem.response)
        }
        let rest = nodes.dropFirst()
        guard let origin = HTTPOrigin(node.url), !origin.isSecure || tls != nil else {
            warn("a node announced an address that cannot be used", node, node.url)
            return ask(rest, head, exchange)
        }
        var request = HTTPClientRequest("GET", host: origin.host, port: origin.port, target: head.target)
        if origin.isSecure { request.tls = tls }
        request.timeout = .seconds(10)
        // Whoever asks is who the other node lets in, or not.
        for name in ["if-none-match", "authorization"] {
            if let value = head.headers[name] { request.headers.add(name, value) }
        }
        let answer = PassedAnswer(exchange)
        answer.call = client.send(request) { [self] event in
            guard case .failed(let error) = event, !answer.hasBegun else { return answer.take(event) }
            answer.call = nil
            warn("a snapshot node does not answer", node, error.message)
            ask(rest, head, exchange)
        }
    }

    private func warn(_ event: String, _ node: NodeAnnouncement, _ detail: String) {
        guard let unsaid = warnings.admit(nowMs: WallClock.nowMs()) else { return }
        journal.warning(event, ["node": node.id, "detail": detail, "lines_left_out": "\(unsaid)"])
    }
}

/// An answer on its way from a snapshot node to a client, at the client's pace.
private final class PassedAnswer {
    private let exchange: HTTPExchange
    var call: HTTPCall?
    private(set) var hasBegun = false

    private static let mostPending = 512 << 10

    init(_ exchange: HTTPExchange) {
        self.exchange = exchange
    }

    func take(_ event: HTTPClient.Event) {
        switch event {
        case .head(let head):
            hasBegun = true
            var headers = HTTPHeaders()
            for name in ["content-type", "etag", "cache-control", "retry-after"] {
                if let value = head.headers[name] { headers.add(name, value) }
            }
            exchange.broken = { [self] in
                call?.cancel()
                call = nil
            }
            exchange.start(
                status: head.status,
                headers: headers,
                length: head.headers["content-length"].flatMap { Int($0) }
            )
        case .data(let bytes):
            exchange.write(bytes)
            guard exchange.pendingBytes > Self.mostPending, let call else { return }
            call.pause()
            exchange.drained = { [self] in
                exchange.drained = nil
                self.call?.resume()
            }
        case .end:
            call = nil
            exchange.end()
        case .failed:
            call = nil
            exchange.abort()
        }
    }
}
