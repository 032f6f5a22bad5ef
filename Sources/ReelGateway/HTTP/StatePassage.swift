import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Passes questions about state on to a snapshot node, found by what the nodes announce. A node that fails before the
/// first byte of its answer, or says that it cannot answer now, is replaced by another one. A node that is silent for a
/// while is asked beside another one, see `HedgedQuestion`.
final class StatePassage {
    fileprivate let client: HTTPClient
    private let announcer: Announcer
    private let peers: PeerMemory
    private let epoch: Epoch
    private let partitions: Int
    fileprivate let tls: TLSClient?
    fileprivate let (timeout, headTimeout, hedgeMs): (Duration, Duration, Int64)
    private let journal: Journal
    /// A node that is away is met by every request.
    private var warnings = LineLimiter(lines: 10, windowMs: 10_000)
    private var turn = 0

    /// With what holds for the gateway; `peers` is what all of its loops know of the other nodes.
    init(
        on loop: EventLoop,
        announcer: Announcer,
        peers: PeerMemory,
        of log: any EventLog,
        _ settings: GatewaySettings,
        journal: Journal
    ) {
        tls = settings.node.peerTLS
        timeout = .milliseconds(settings.peerMs)
        headTimeout = .milliseconds(min(settings.peerMs, settings.peerHeadMs))
        hedgeMs = settings.hedgeMs
        client = HTTPClient(on: loop)
        self.announcer = announcer
        self.peers = peers
        (epoch, partitions) = (log.epoch, log.partitions)
        self.journal = journal
    }

    /// The header of a request that a gateway passed on. The node that receives it answers from its own state.
    static let passedHeader = "reel-passed"

    /// True if another node than this one may have the state of this log.
    func hasOthers(than own: String) -> Bool {
        announcer.awake.contains { $0.id != own && $0.role != "gateway" && $0.epoch ?? epoch == epoch }
    }

    /// Asks the next node, others too where that one is silent, and streams the first answer back. `own`: this node,
    /// which is not asked, where it has state itself; `otherwise` then answers where no other node does.
    func pass(
        _ question: any PassedRequest,
        _ exchange: HTTPExchange,
        except own: String? = nil,
        otherwise: (() -> Void)? = nil
    ) {
        turn += 1
        let (partition, nowMs) = (question.partition(of: partitions), client.loop.nowMs)
        let (all, awake) = (announcer.nodes, announcer.awake)
        let (answering, refusing) = peers.use { record in
            record.asks()
            return (
                awake.filter { !record.isSilent($0.id, nowMs: nowMs) },
                Set(awake.map(\.id).filter { record.hasRefused($0, partition, nowMs: nowMs) })
            )
        }
        let others = all.filter { $0.id != own }
        let nodes = Self.order(others, awake: answering, refusing: refusing, epoch: epoch, partition, turn: turn)
        PassedQuestion(question, in: partition, to: nodes, exchange, by: self, otherwise: otherwise).start()
    }

    /// The nodes that are asked, one after the other: those that have the state of this log, in turn. Then come those
    /// that are `refusing`, that do not fold the partition at present, or that still fold what the others have long
    /// folded in it. Those that are not
    /// `awake` come last: they may hang. A node that has left is not asked.
    static func order(
        _ nodes: [NodeAnnouncement],
        awake: [NodeAnnouncement],
        refusing: Set<String> = [],
        epoch: Epoch,
        _ partition: Int,
        turn: Int
    ) -> [NodeAnnouncement] {
        let able = nodes.filter { node in
            (node.role == "snapshot" || node.role == "serve") && node.epoch ?? epoch == epoch && !node.hasLeft
        }
        func seq(_ node: NodeAnnouncement) -> Seq {
            node.folded(in: epoch).first { $0.partition == partition }?.seq ?? .none
        }
        let wanted = (able.map(seq).max() ?? .none) - lagMax
        let isAwake = Set(awake.map(\.id))
        let ranks = Dictionary(grouping: able) { node in
            guard isAwake.contains(node.id) else { return 2 }
            let hasStopped = node.stop(of: NodeRole.snapshot.rawValue, partition) != nil
            return seq(node) >= wanted && !refusing.contains(node.id) && !hasStopped ? 0 : 1
        }
        return (0...2).flatMap { rank in
            let group = ranks[rank] ?? []
            let start = group.isEmpty ? 0 : turn % group.count
            return group[start...] + group[..<start]
        }
    }

    /// A node of which another one is so many seqs ahead has not just been asked a moment too early.
    private static let lagMax: Seq = 16_384

    /// True if a question that waits for these nodes may be sent to one more.
    fileprivate func mayHedge(_ asked: [NodeAnnouncement]) -> Bool {
        let (ids, nowMs) = (asked.map(\.id), client.loop.nowMs)
        return peers.use { $0.mayHedge(asked: ids, nowMs: nowMs) }
    }

    /// A node has begun to answer.
    fileprivate func answers(_ node: NodeAnnouncement, _ partition: Int) {
        peers.use { $0.answered(node.id, partition) }
    }

    /// A node cannot answer now.
    fileprivate func refuses(_ node: NodeAnnouncement, _ partition: Int, status: Int) {
        let nowMs = client.loop.nowMs
        peers.use { $0.refused(node.id, partition, nowMs: nowMs) }
        warn("a snapshot node does not answer", node, "it cannot answer now: status \(status)")
    }

    /// A node was silent for too long.
    fileprivate func isSilent(_ node: NodeAnnouncement, _ detail: String) {
        let nowMs = client.loop.nowMs
        peers.use { $0.wasSilent(node.id, nowMs: nowMs) }
        warn("a snapshot node does not answer", node, detail)
    }

    fileprivate func warn(_ event: String, _ node: NodeAnnouncement, _ detail: String) {
        guard let unsaid = warnings.admit(nowMs: WallClock.nowMs()) else { return }
        journal.warning(event, ["node": node.id, "detail": detail, "lines_left_out": "\(unsaid)"])
    }
}

/// One question on its way: does what `HedgedQuestion` decides.
private final class PassedQuestion {
    /// The answer of a node that cannot answer now.
    private struct Refusal {
        var head: HTTPResponseHead
        var body: [UInt8] = []
    }

    private let passage: StatePassage
    private let question: any PassedRequest
    private let partition: Int
    private let nodes: [NodeAnnouncement]
    private let exchange: HTTPExchange
    private let otherwise: (() -> Void)?
    private var hedged: HedgedQuestion
    private var calls: [Int: HTTPCall] = [:]
    private var refusals: [Int: Refusal] = [:]
    private var timer: LoopTimer?
    /// What is passed on, and from which node; nil: no node has begun to answer.
    private var passed: (index: Int, answer: PassedAnswer)?

    /// A refusal has no more bytes.
    private static let refusalBytes = 64 << 10

    init(
        _ question: any PassedRequest,
        in partition: Int,
        to nodes: [NodeAnnouncement],
        _ exchange: HTTPExchange,
        by passage: StatePassage,
        otherwise: (() -> Void)?
    ) {
        self.otherwise = otherwise
        self.passage = passage
        self.question = question
        self.partition = partition
        self.nodes = nodes
        self.exchange = exchange
        hedged = HedgedQuestion(nodes: nodes.count, delayMs: passage.hedgeMs)
    }

    private var loop: EventLoop { passage.client.loop }

    func start() { perform(hedged.start(nowMs: loop.nowMs)) }

    private func perform(_ actions: [HedgedQuestion.Action]) {
        for action in actions {
            switch action {
            case .ask(let index): ask(index)
            case .wait: wait()
            case .cancel(let index, let wasSilent):
                if wasSilent {
                    passage.isSilent(
                        nodes[index],
                        "silent for \(passage.hedgeMs) ms, and another node answered at once"
                    )
                }
                calls.removeValue(forKey: index)?.cancel()
            case .pass(let index):
                stopWaiting()
                passage.answers(nodes[index], partition)
                let answer = PassedAnswer(exchange, preamble: question.preamble)
                answer.call = calls.removeValue(forKey: index)
                answer.call?.allowSilence(of: passage.timeout)
                passed = (index, answer)
            case .refuse(let index):
                stopWaiting()
                refuse(with: index.flatMap { refusals[$0] })
            }
        }
    }

    private func wait() {
        stopWaiting()
        timer = loop.timer(after: .milliseconds(passage.hedgeMs)) { [self] in
            timer = nil
            guard exchange.isOpen else { return giveUp() }
            let mayHedge = hedged.hasNext && passage.mayHedge(hedged.asked.map { nodes[$0] })
            perform(hedged.delayPassed(mayHedge: mayHedge, nowMs: loop.nowMs))
        }
    }

    private func stopWaiting() {
        timer?.cancel()
        timer = nil
    }

    /// Nobody is there any more to whom an answer could be given.
    private func giveUp() {
        stopWaiting()
        perform(hedged.giveUp())
    }

    private func ask(_ index: Int) {
        guard exchange.isOpen else { return giveUp() }
        let node = nodes[index]
        guard let origin = HTTPOrigin(node.url), !origin.isSecure || passage.tls != nil else {
            passage.warn("a node announced an address that cannot be used", node, node.url)
            return perform(hedged.failed(index, nowMs: loop.nowMs))
        }
        var request = question.clientRequest(to: origin)
        if exchange.request.method == "HEAD" { request.method = "HEAD" }
        if origin.isSecure { request.tls = passage.tls }
        request.headers.add(StatePassage.passedHeader, "1")
        request.timeout = hedged.hasNext ? passage.headTimeout : passage.timeout
        // Whoever asks is who the other node lets in, or not.
        // What has something before it is packed here, if at all.
        let names =
            question.preamble.isEmpty ? ["authorization", "if-none-match", "accept-encoding"] : ["authorization"]
        for name in names {
            if let value = exchange.request.headers[name] { request.headers.add(name, value) }
        }
        calls[index] = passage.client.send(request) { [self] event in take(event, from: index) }
    }

    private func take(_ event: HTTPClient.Event, from index: Int) {
        if let passed { return passed.index == index ? passed.answer.take(event) : () }
        guard exchange.isOpen else { return giveUp() }
        switch event {
        case .head(let head) where head.status == 503 || head.status == 409 && exchange.request.method != "HEAD":
            refusals[index] = Refusal(head: head)
        case .head:
            perform(hedged.answered(index, nowMs: loop.nowMs))
            passed?.answer.take(event)
        case .data(let bytes):
            refusals[index]?.body += bytes
            if refusals[index]?.body.count ?? 0 > Self.refusalBytes { calls[index]?.cancel() }
        case .end:
            calls[index] = nil
            guard let refusal = refusals[index] else { return }
            // Another node says the same of an epoch that has changed. A loss concerns this node alone.
            if refusal.head.status == 409, !Self.tellsLoss(refusal.body) {
                refusals[index] = nil
                perform(hedged.answered(index, nowMs: loop.nowMs))
                for event in [.head(refusal.head), .data(refusal.body), .end] as [HTTPClient.Event] {
                    passed?.answer.take(event)
                }
                return
            }
            passage.refuses(nodes[index], partition, status: refusal.head.status)
            perform(hedged.refused(index, seq: Self.seq(in: refusal.body), nowMs: loop.nowMs))
        case .failed(let error):
            // It was cancelled.
            guard hedged.asked.contains(index) else { return }
            calls[index] = nil
            refusals[index] = nil
            if error.code == .timedOut {
                passage.isSilent(nodes[index], error.message)
            } else {
                passage.warn("a snapshot node does not answer", nodes[index], error.message)
            }
            perform(hedged.failed(index, nowMs: loop.nowMs))
        }
    }

    private func refuse(with refusal: Refusal?) {
        guard exchange.isOpen else { return }
        if let otherwise { return otherwise() }
        guard let refusal else {
            var problem = Problem(.nodeBehind, "found no snapshot node that answers")
            problem.retryMs = 1_000
            return exchange.respond(problem.response)
        }
        let answer = PassedAnswer(exchange, preamble: [])
        answer.take(.head(refusal.head))
        answer.take(.data(refusal.body))
        answer.take(.end)
    }

    /// True if a node refuses because the log has lost something that it has folded.
    private static func tellsLoss(_ problem: [UInt8]) -> Bool {
        problem.withUnsafeBytes { bytes in
            do throws(ReelError) {
                let code = try JSONObject(bytes, levels: 4, shape: .internal).string("code")
                return code.flatMap { ErrorCode(rawValue: $0) }?.isLoss == true
            } catch {
                return false
            }
        }
    }

    /// How far a node is that refuses, as far as it says so.
    private static func seq(in problem: [UInt8]) -> Seq {
        problem.withUnsafeBytes { bytes in
            do throws(ReelError) {
                return try JSONObject(bytes, levels: 4, shape: .internal).integer("seq", from: .none) ?? .none
            } catch {
                return .none
            }
        }
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
            var names = [
                "content-type", "cache-control", "retry-after", "content-encoding", "vary", UnpublishedStream.header,
            ]
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
    init(_ request: StateRequest, _ origin: HTTPOrigin) {
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
