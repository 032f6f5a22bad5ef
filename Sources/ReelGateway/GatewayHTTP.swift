import ReelCore
import ReelNet
import ReelNode

/// The HTTP side of one loop of a gateway.
final class GatewayHTTP: HTTPHandler {
    private enum Endpoint: Sendable {
        case socket, publish, events, block, head
        case state(StateRequest.Route)
        case node(NodeEndpoint)
    }

    let gateway: GatewayLoop
    private let answers: NodeAnswers
    private let passage: StatePassage
    private let router: Router<Endpoint>

    init(_ gateway: GatewayLoop, answers: NodeAnswers, passage: StatePassage) {
        self.gateway = gateway
        self.answers = answers
        self.passage = passage
        var router = Router<Endpoint>()
        router.add("GET", "/v1/socket", query: [], .socket)
        router.add("POST", "/v1/streams/{stream}/events", .publish)
        router.add("GET", "/v1/streams/{stream}/events", query: ["after", "epoch", "limit"], .events)
        router.add("GET", "/v1/streams/{stream}/blocks/{epoch}/{block}", .block)
        router.add("GET", "/v1/streams/{stream}/head", .head)
        router.addStateRoutes { .state($0) }
        router.addNodeRoutes { .node($0) }
        self.router = router
    }

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        do throws(Problem) {
            let match = try router.match(request.head)
            let access = try access(match, request.head)
            switch match.endpoint {
            case .socket:
                throw Problem(.badRequest, "found a plain request, expected a WebSocket's handshake")
            case .publish: try publish(try match.stream, request, exchange, access)
            case .events: try events(match, exchange)
            case .block: try block(match, exchange)
            case .head: try head(try match.stream, exchange)
            case .state(let route):
                let question = try StateRequest(route, match)
                if let divergence = gateway.share.divergence { throw Problem(divergence) }
                if let source = gateway.share.state {
                    source.respond(to: question, exchange)
                } else {
                    passage.pass(request.head, exchange)
                }
            case .node(let endpoint): exchange.respond(answers.response(endpoint))
            }
        } catch {
            exchange.respond(error.response)
        }
    }

    /// What the one who asks may do; throws where that is not what is asked for.
    private func access(_ match: Router<Endpoint>.Match, _ head: HTTPRequestHead) throws(Problem) -> Access {
        let tokens = gateway.share.settings.node.tokens
        switch match.endpoint {
        case .socket: return Access(nil)
        case .node(let endpoint): return endpoint.isGuarded ? try Access(tokens, head) : Access(nil)
        case .publish:
            let access = try Access(tokens, head)
            if let refusal = access.refusalToPublish(try match.stream) { throw Problem(refusal) }
            return access
        case .events, .block, .head, .state:
            let access = try Access(tokens, head)
            try access.requireRead(try match.stream)
            return access
        }
    }

    /// A token may come with the handshake or in `hello`.
    private func socketAccess(_ head: HTTPRequestHead) throws(Problem) -> Access? {
        guard let tokens = gateway.share.settings.node.tokens else { return Access(nil) }
        return head.headers["authorization"] == nil ? nil : try Access(tokens, head)
    }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        do throws(Problem) {
            guard case .socket = try router.match(offer.head).endpoint else {
                throw Problem(.badRequest, "found a WebSocket's handshake, expected a plain request")
            }
            guard offer.subprotocols.contains("reel.v1") else {
                let found = offer.subprotocols.isEmpty ? "no subprotocol" : offer.subprotocols.joined(separator: ", ")
                throw Problem(.badRequest, "found \(found), expected the subprotocol reel.v1")
            }
            if gateway.share.readiness.readiness.isLeaving {
                throw Problem(.overloaded, "this node ends")
            }
            return .accept(
                subprotocol: "reel.v1",
                maxMessage: gateway.share.settings.frameBytes,
                handler: SocketClient(gateway, access: try socketAccess(offer.head))
            )
        } catch {
            return .refuse(error.response)
        }
    }

    func refusal(of violation: HTTPViolation) -> HTTPResponse {
        Problem(violation).response
    }

    // MARK: Publishing

    private func publish(
        _ stream: StreamName,
        _ request: HTTPRequest,
        _ exchange: HTTPExchange,
        _ access: Access
    ) throws(Problem) {
        try request.requireJSON()
        let publish: ClientFrame.Publish
        do throws(ReelError) {
            publish = try request.body.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                let object = try JSONObject(Bytes(bytes), levels: ClientFrame.levels, shape: .badRequest)
                let events = try object.array("events") { (reader) throws(ReelError) in Array(try reader.raw()) }
                return ClientFrame.Publish(
                    stream: stream,
                    epoch: try object.epoch(),
                    events: try object.required("events", events)
                )
            }
        } catch {
            throw Problem(error)
        }
        let settings = gateway.share.settings
        guard (1...settings.batch).contains(publish.events.count) else {
            var problem = Problem(
                .limit,
                "found \(publish.events.count) events, expected 1 to \(settings.batch)"
            )
            problem.limit = settings.batch
            throw problem
        }
        let waiting = HTTPPublish(gateway, stream, exchange, count: publish.events.count)
        gateway.publishes[waiting.number] = waiting
        gateway.publish(publish, with: access, from: waiting.number, ref: nil) { waiting.nacked($0) }
    }

    // MARK: Reading

    private func head(_ stream: StreamName, _ exchange: HTTPExchange) throws(Problem) {
        let share = gateway.share
        if let divergence = share.divergence { throw Problem(divergence) }
        let partition = stream.partition(of: share.partitions)
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", share.epoch.description)
        writer.member("partition", partition)
        writer.member("first", share.first(partition))
        writer.member("head", gateway.rings[partition].head)
        exchange.respond(.json(writer.finish()))
    }

    private func events(_ match: Router<Endpoint>.Match, _ exchange: HTTPExchange) throws(Problem) {
        let stream = try match.stream
        let after = try match.integer("after", from: -1) ?? .none
        let limit = Int(try match.integer("limit", from: 1, to: 10_000) ?? 1_000)
        let range = EventsRange(gateway, stream, exchange)
        range.answer(after: after, epoch: try match.epoch, limit: limit)
    }

    private func block(_ match: Router<Endpoint>.Match, _ exchange: HTTPExchange) throws(Problem) {
        guard let epoch = Epoch(match.path["epoch"] ?? "") else {
            throw Problem(
                .badRequest,
                "found the epoch '\(match.path["epoch"] ?? "")', expected 16 lower-case hex digits"
            )
        }
        guard let text = match.path["block"], let block = Int64(text), String(block) == text,
            (0...largestInteger / EventsRange.blockSeqs - 1).contains(block)
        else { throw Problem(.badRange, "found the block '\(match.path["block"] ?? "")', expected a number from 0 on") }
        let range = EventsRange(gateway, try match.stream, exchange)
        range.answer(block: block, epoch: epoch)
    }
}

@available(*, unavailable)
extension GatewayHTTP: Sendable {}
