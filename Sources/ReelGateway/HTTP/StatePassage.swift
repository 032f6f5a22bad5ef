import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Passes questions about state on to a snapshot node, found by what the nodes announce. One that fails before the
/// first byte of its answer, or says that it cannot answer now, is replaced by another.
final class StatePassage {
    private let client: HTTPClient
    private let announcer: Announcer
    private let epoch: Epoch
    private let partitions: Int
    private let tls: TLSClient?
    private let (timeout, headTimeout): (Duration, Duration)
    private let journal: Journal
    /// A node that is away is met by every request.
    private var warnings = LineLimiter(lines: 10, windowMs: 10_000)
    private var turn = 0

    /// With what holds for the gateway.
    init(
        on loop: EventLoop,
        announcer: Announcer,
        of log: any EventLog,
        _ settings: GatewaySettings,
        journal: Journal
    ) {
        tls = settings.node.peerTLS
        timeout = .milliseconds(settings.peerMs)
        headTimeout = .milliseconds(min(settings.peerMs, settings.peerHeadMs))
        client = HTTPClient(on: loop)
        self.announcer = announcer
        (epoch, partitions) = (log.epoch, log.partitions)
        self.journal = journal
    }

    /// Asks the next node, and streams its answer back.
    func pass(_ question: StateRequest, _ exchange: HTTPExchange) {
        turn += 1
        let partition = question.stream.partition(of: partitions)
        let nodes = Self.order(announcer.nodes, awake: announcer.awake, epoch: epoch, partition, turn: turn)
        ask(nodes[...], question, exchange)
    }

    /// Who is asked, one after the other: those that have the state of this log, in turn; behind them those that still
    /// fold what the others have long folded in the partition, and last those that may hang; nobody who has left.
    static func order(
        _ nodes: [NodeAnnouncement],
        awake: [NodeAnnouncement],
        epoch: Epoch,
        _ partition: Int,
        turn: Int
    ) -> [NodeAnnouncement] {
        let able = nodes.filter { node in
            (node.role == "snapshot" || node.role == "serve") && node.epoch ?? epoch == epoch && !node.hasLeft
        }
        func seq(_ node: NodeAnnouncement) -> Seq {
            node.positions(in: epoch).first { $0.partition == partition }?.seq ?? .none
        }
        let wanted = (able.map(seq).max() ?? .none) - lagMax
        let isAwake = Set(awake.map(\.id))
        let ranks = Dictionary(grouping: able) { isAwake.contains($0.id) ? seq($0) >= wanted ? 0 : 1 : 2 }
        return (0...2).flatMap { rank in
            let group = ranks[rank] ?? []
            let start = group.isEmpty ? 0 : turn % group.count
            return group[start...] + group[..<start]
        }
    }

    /// A node of which another one is so many seqs ahead has not just been asked a moment too early.
    private static let lagMax: Seq = 16_384

    private func ask(_ nodes: ArraySlice<NodeAnnouncement>, _ question: StateRequest, _ exchange: HTTPExchange) {
        // Nobody is there any more to whom an answer could be given.
        guard exchange.isOpen else { return }
        guard let node = nodes.first else {
            var problem = Problem(.nodeBehind, "found no snapshot node that answers")
            problem.retryMs = 1_000
            return exchange.respond(problem.response)
        }
        let rest = nodes.dropFirst()
        guard let origin = HTTPOrigin(node.url), !origin.isSecure || tls != nil else {
            warn("a node announced an address that cannot be used", node, node.url)
            return ask(rest, question, exchange)
        }
        var request = HTTPClientRequest(question, origin)
        if exchange.request.method == "HEAD" { request.method = "HEAD" }
        if origin.isSecure { request.tls = tls }
        request.timeout = rest.isEmpty ? timeout : headTimeout
        // Whoever asks is who the other node lets in, or not.
        // What has something before it is packed here, if at all.
        let passed =
            question.preamble.isEmpty ? ["authorization", "if-none-match", "accept-encoding"] : ["authorization"]
        for name in passed {
            if let value = exchange.request.headers[name] { request.headers.add(name, value) }
        }
        let answer = PassedAnswer(exchange, preamble: question.preamble)
        var refusal: String?
        answer.call = client.send(request) { [self] event in
            if case .head = event, !exchange.isOpen { answer.call?.cancel() }
            guard exchange.isOpen || answer.hasBegun else { return answer.call = nil }
            // What the last one says is told.
            if case .head(let head) = event, head.status == 503, !rest.isEmpty {
                refusal = "it cannot answer now: status 503"
                // `failed` follows.
                answer.call?.cancel()
                return
            }
            // Nobody can take over now.
            if case .head = event { answer.call?.allowSilence(of: timeout) }
            guard case .failed(let error) = event, !answer.hasBegun else { return answer.take(event) }
            answer.call = nil
            warn("a snapshot node does not answer", node, refusal ?? error.message)
            ask(rest, question, exchange)
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

    private let preamble: [UInt8]

    init(_ exchange: HTTPExchange, preamble: [UInt8]) {
        self.exchange = exchange
        self.preamble = preamble
    }

    func take(_ event: HTTPClient.Event) {
        switch event {
        case .head(let head):
            hasBegun = true
            var headers = HTTPHeaders()
            var names = ["content-type", "cache-control", "retry-after", "content-encoding", "vary"]
            if preamble.isEmpty { names.append("etag") }
            for name in names {
                for value in head.headers.all(name) { headers.add(name, value) }
            }
            let first = head.status == 200 ? preamble : []
            exchange.broken = { [self] in
                call?.cancel()
                call = nil
            }
            if head.status == 304 {
                call = nil
                return exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
            exchange.start(
                status: head.status,
                headers: headers,
                length: head.headers["content-length"].flatMap { Int($0) }.map {
                    $0.addingReportingOverflow(first.count)
                }
                .flatMap { $0.overflow ? nil : $0.partialValue }
            )
            exchange.write(first)
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

extension HTTPClientRequest {
    /// The words in which a snapshot node is asked.
    fileprivate init(_ request: StateRequest, _ origin: HTTPOrigin) {
        var (method, body) = ("GET", [UInt8]())
        var target = "/v1/streams/\(request.stream)"
        var query: [(String, String)] = []
        switch request.kind {
        case .snapshot: target += "/snapshot"
        case .delta(let after, _):
            target += "/delta"
            query.append(("after", "\(after)"))
        case .object(let model, let id):
            target += "/objects"
            query = [("model", HTTPRequestHead.percentEncoded(model)), ("id", HTTPRequestHead.percentEncoded(id))]
        case .outcomes(let acks, let epoch):
            target += "/outcomes"
            var writer = JSONObjectWriter()
            writer.member("epoch", epoch.description)
            writer.member("acks", acks) { $0.append(acked: $1) }
            (method, body) = ("POST", writer.finish())
        case .sites(let after, let limit, _):
            target += "/sites"
            if after != .none { query.append(("after", "\(after)")) }
            query.append(("limit", "\(limit)"))
        }
        if body.isEmpty {
            if let epoch = request.kind.epoch { query.append(("epoch", "\(epoch)")) }
            if request.seqMin != .none { query.append(("min_seq", "\(request.seqMin)")) }
        }
        if !query.isEmpty { target += "?" + query.map { "\($0)=\($1)" }.joined(separator: "&") }
        self.init(method, host: origin.host, port: origin.port, target: target, body: body)
    }
}
