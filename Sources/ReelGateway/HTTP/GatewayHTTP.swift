import ReelCore
import ReelNet
import ReelNode

/// The HTTP handler of one loop of a gateway.
final class GatewayHTTP: HTTPHandler {
    enum Endpoint: Sendable {
        case socket, echo, publish, sync, events, block, head, streams, crowdedStreams, digests
        case state(StateRequest.Route)
        case node(NodeEndpoint)
    }

    let gateway: GatewayLoop
    private let answers: NodeAnswers
    private let proxy: SnapshotProxy
    private let router: Router<Endpoint>
    private let origins: OriginRules

    init(_ gateway: GatewayLoop, answers: NodeAnswers, proxy: SnapshotProxy) {
        self.gateway = gateway
        self.answers = answers
        origins = OriginRules(gateway.context.settings.node)
        self.proxy = proxy
        router = Self.routes(echoes: gateway.context.settings.echoes, hasState: gateway.context.state != nil)
    }

    /// Returns the routes of a gateway. `openapi.yaml` describes the same routes.
    static func routes(echoes: Bool, hasState: Bool) -> Router<Endpoint> {
        var router = Router<Endpoint>()
        router.add("GET", "/v1/socket", query: [], .socket)
        if echoes { router.add("GET", "/debug/echo", .echo) }
        router.add("POST", "/v1/streams/{stream}/events", query: ["outcome"], .publish)
        router.add("POST", "/v1/streams/{stream}/sync", .sync)
        let events: Set = ["after", "epoch", "limit", "wait", "models", "site", "outcome"]
        router.add("GET", "/v1/streams/{stream}/events", query: events, .events)
        router.add("GET", "/v1/streams/{stream}/blocks/{epoch}/{block}", .block)
        router.add("GET", "/v1/streams/{stream}/head", .head)
        router.addStateRoutes { .state($0) }
        router.addStreamList(.streams)
        router.addDigests(.digests)
        if hasState { router.add("GET", "/v1/sites", .crowdedStreams) }
        router.addNodeRoutes { .node($0) }
        return router
    }

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        answers.requests.watch(exchange, route: nil)
        guard origins.admit(exchange) else { return }
        var route: String?
        let fail = { [answers] (problem: Problem, route: String?) in
            answers.requests.audit(problem, route, exchange.client)
            exchange.respond(problem.response)
        }
        do throws(Problem) {
            let match = try router.match(request.head)
            let pattern = match.pattern
            route = pattern
            answers.requests.watch(exchange, route: route)
            let access = try access(match, request.head)
            switch match.endpoint {
            case .socket, .echo:
                throw Problem(.badRequest, "found a plain request, expected a WebSocket's handshake")
            case .publish: try publish(match, request, exchange, access) { fail($0, pattern) }
            case .sync: try sync(try match.stream, request, exchange, access) { fail($0, pattern) }
            case .events: try events(match, exchange, access)
            case .block: try block(match, exchange, access)
            case .head: try head(try match.stream, exchange)
            case .state(let route):
                if let divergence = gateway.health.divergence { throw Problem(divergence) }
                let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
                gateway.largeInput.read(request, of: payer, exchange) {
                    { _ throws(Problem) in try StateRequest(route, match, request) }
                } then: { [self] question in
                    switch question {
                    case .success(var question):
                        question.payer = payer
                        ask(question, exchange)
                    case .failure(let problem): fail(problem, pattern)
                    }
                }
            case .streams: try list(StreamListRequest(match, request.head), exchange, access)
            case .digests:
                if let divergence = gateway.health.divergence { throw Problem(divergence) }
                let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
                gateway.largeInput.read(request, of: payer, exchange) {
                    { _ throws(Problem) in try DigestsRequest(request) }
                } then: { [self] question in
                    do throws(Problem) {
                        try compare(try question.get(), exchange, access)
                    } catch {
                        fail(error, pattern)
                    }
                }
            case .crowdedStreams:
                let streams = gateway.context.state?.crowdedStreams ?? []
                exchange.respond(try CrowdedStream.response(streams, of: gateway.context.epoch, for: access))
            case .node(let endpoint):
                exchange.respond(answers.response(endpoint, request.head, from: exchange.client))
            }
        } catch {
            fail(error, route)
        }
    }

    /// Returns the client's rights. Throws if they do not permit the request.
    private func access(_ match: Router<Endpoint>.Match, _ head: HTTPRequestHead) throws(Problem) -> Access {
        let tokens = gateway.context.settings.node.tokens
        switch match.endpoint {
        case .socket, .echo: return Access(nil)
        case .node(let endpoint):
            try answers.check(endpoint, head)
            return Access(nil)
        case .publish:
            let access = try Access(tokens, head)
            try access.requirePublish(try match.stream)
            // An outcome reveals something of the stream's state.
            if match.query["outcome"] == "1" { try access.requireRead(try match.stream) }
            return access
        case .sync:
            let access = try Access(tokens, head)
            try access.requirePublish(try match.stream)
            try access.requireRead(try match.stream)
            return access
        case .state(let route):
            let access = try Access(tokens, head)
            try access.require(route, of: try match.stream)
            return access
        case .streams, .crowdedStreams, .digests: return try Access(tokens, head)
        case .events, .block, .head:
            let access = try Access(tokens, head)
            try access.requireRead(try match.stream)
            return access
        }
    }

    /// Returns the rights from the handshake's token; nil if there is none: then the token comes in `hello`.
    private func socketAccess(_ head: HTTPRequestHead) throws(Problem) -> Access? {
        guard let tokens = gateway.context.settings.node.tokens else { return Access(nil) }
        return head.headers["authorization"] == nil ? nil : try Access(tokens, head)
    }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        var route: String?
        do throws(Problem) {
            let decision = try accept(offer, &route)
            answers.requests.count(route, 101)
            return decision
        } catch {
            answers.requests.refused(error, route, offer.client)
            return .refuse(error.response)
        }
    }

    /// Throws the reason why this client gets no WebSocket. `route` is set to the pattern of the request's route.
    private func accept(_ offer: WebSocketOffer, _ route: inout String?) throws(Problem) -> WebSocketDecision {
        // A page that may not use this node gets no socket, whatever else the browser sends.
        _ = try origins.fields(for: offer.head)
        let match = try router.match(offer.head)
        route = match.pattern
        switch match.endpoint {
        case .socket: break
        case .echo: return .accept(subprotocol: nil, maxMessage: EchoSocket.messageBytes, handler: EchoSocket())
        default: throw Problem(.badRequest, "found a WebSocket's handshake, expected a plain request")
        }
        guard offer.subprotocols.contains("reel.v1") else {
            let found = offer.subprotocols.isEmpty ? "no subprotocol" : offer.subprotocols.joined(separator: ", ")
            throw Problem(.badRequest, "found \(found), expected the subprotocol reel.v1")
        }
        if gateway.health.isLeaving {
            throw Problem(.overloaded, "this node ends")
        }
        return .accept(
            subprotocol: "reel.v1",
            // The client is unknown before `hello`. `SocketClient.enter` raises the limit.
            maxMessage: min(SocketClient.helloBytes, gateway.context.settings.frameBytes),
            handler: SocketClient(gateway, access: try socketAccess(offer.head))
        )
    }

    /// Refuses a request by its route, `Origin` and token, before its body is read.
    func refusal(of head: HTTPRequestHead) -> HTTPResponse? {
        answers.refusal(of: head, by: origins, router) { match throws(Problem) in
            _ = try access(match, head)
        }
    }

    func isHealthCheck(_ head: HTTPRequestHead) -> Bool { NodeEndpoint.isHealthCheck(head) }

    func refusal(of violation: HTTPViolation) -> HTTPResponse {
        answers.refusal(of: violation)
    }

    /// Answers a question about the state of a stream.
    func ask(_ question: StateRequest, _ exchange: HTTPExchange) {
        ask(question, exchange) {
            $0.canAnswer(question)
        } answer: {
            $0.respond(to: question, exchange)
        }
    }

    /// Answers with a page of the existing streams.
    private func list(_ asked: StreamListRequest, _ exchange: HTTPExchange, _ access: Access) throws(Problem) {
        _ = try asked.ranges(for: access)
        var question = asked
        // The other node may have no keys.
        if let grant = access.grant { question.readable = grant.read }
        ask(question, exchange) { [question] in
            $0.canAnswer(question)
        } answer: { [question] in
            $0.respond(to: question, for: access, exchange)
        }
    }

    /// Answers with the digests of the streams that the client may read.
    private func compare(_ asked: DigestsRequest, _ exchange: HTTPExchange, _ access: Access) throws(Problem) {
        var question = asked
        question.readable = try access.readable(asked.readable)
        ask(question, exchange) { [question] in
            $0.canAnswer(question)
        } answer: { [question] in
            $0.respond(to: question, for: access, exchange)
        }
    }

    /// Answers a question from this process, or forwards it to another node. It also forwards it if this process has
    /// state, but less than is asked for, and another node may have it.
    private func ask(
        _ question: any ProxiedRequest,
        _ exchange: HTTPExchange,
        isAnswered: (any StateSource) -> Bool,
        answer: @escaping (any StateSource) -> Void
    ) {
        guard let source = gateway.context.state else { return proxy.pass(question, exchange) }
        let own = gateway.context.nodeID
        // A question that another gateway has forwarded is answered here. Otherwise two nodes that are behind would
        // forward it to each other without end.
        guard exchange.request.headers[PeerClient.passedHeader] == nil, !isAnswered(source),
            proxy.hasOthers(than: own)
        else { return answer(source) }
        proxy.pass(question, exchange, except: own) { answer(source) }
    }

    // MARK: Reading

    private func head(_ stream: StreamName, _ exchange: HTTPExchange) throws(Problem) {
        let context = gateway.context
        if let divergence = context.health.divergence { throw Problem(divergence) }
        let partition = stream.partition(of: context.partitions)
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", context.epoch.description)
        writer.member("partition", partition)
        writer.member("first", context.health.first(of: partition))
        writer.member("head", gateway.rings[partition].head)
        exchange.respond(.json(writer.finish()))
    }

    private func events(
        _ match: Router<Endpoint>.Match,
        _ exchange: HTTPExchange,
        _ access: Access
    ) throws(Problem) {
        let stream = try match.stream
        let limit = Int(try match.integer("limit", from: 1, to: 10_000) ?? 1_000)
        let waitS = try match.integer("wait", from: 0, to: gateway.context.settings.pollS) ?? 0
        let filter = try EventFilter(match)
        let hasOutcomes = try match.integer("outcome", from: 0, to: 1) == 1
        var place = (after: try match.integer("after", from: -1) ?? .none, epoch: try match.epoch)
        guard exchange.request.acceptsEventStream else {
            let range = EventsRange(gateway, stream, through: filter, hasOutcomes: hasOutcomes, exchange, access)
            if waitS > 0 { range.place = try countConnection(of: access) }
            return range.answer(after: place.after, epoch: place.epoch, limit: limit, waitS: waitS)
        }
        if let last = exchange.request.headers["last-event-id"] { place = try Self.place(lastEventID: last) }
        let client = EventStream.Client(
            exchange: exchange,
            access: access,
            place: try countConnection(of: access)
        )
        EventStream.begin(
            gateway,
            stream,
            through: filter,
            hasOutcomes: hasOutcomes,
            after: place.after,
            epoch: place.epoch,
            limit: limit,
            for: client
        )
    }

    private func countConnection(of access: Access) throws(Problem) -> PayerShares.Unit? {
        do throws(ReelError) { return try gateway.context.limits.countConnection(of: access) } catch {
            throw Problem(error)
        }
    }

    /// Parses `EPOCH:SEQ`, the id of the last message that the client has received.
    private static func place(lastEventID: String) throws(Problem) -> (after: Seq, epoch: Epoch?) {
        let parts = lastEventID.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = Epoch(String(parts[0])), let seq = Seq(parts[1]),
            (.none...largestInteger).contains(seq), String(seq) == parts[1]
        else { throw Problem(.badRequest, "found the Last-Event-ID '\(lastEventID)', expected EPOCH:SEQ") }
        return (seq, epoch)
    }

    private func block(
        _ match: Router<Endpoint>.Match,
        _ exchange: HTTPExchange,
        _ access: Access
    ) throws(Problem) {
        guard let epoch = Epoch(match.path["epoch"] ?? "") else {
            throw Problem(
                .badRequest,
                "found the epoch '\(match.path["epoch"] ?? "")', expected 16 lower-case hex digits"
            )
        }
        guard let text = match.path["block"], let block = Int64(text), String(block) == text,
            (0...largestInteger / EventsRange.blockSeqs - 1).contains(block)
        else { throw Problem(.badRange, "found the block '\(match.path["block"] ?? "")', expected a number from 0 on") }
        let range = EventsRange(gateway, try match.stream, exchange, access)
        range.answer(block: block, epoch: epoch)
    }
}

@available(*, unavailable)
extension GatewayHTTP: Sendable {}

extension EventFilter {
    /// Creates the filter of the parameters `models` and `site`; nil: all events.
    fileprivate init?<Endpoint>(_ match: Router<Endpoint>.Match) throws(Problem) {
        var site: Site?
        if let text = match.query["site"] {
            site = Site(text)
            guard site != nil else {
                throw Problem(.badRequest, "found the site '\(text)', expected a UUID in lower case")
            }
        }
        guard let text = match.query["models"] else {
            guard site == nil else { throw Problem(.badRequest, "found site without models") }
            return nil
        }
        // No model has an empty name, so an empty list names no model.
        let models = text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard models.count <= Self.modelsMax else {
            var problem = Problem(.limit, "found \(models.count) models, expected at most \(Self.modelsMax)")
            problem.limit = Self.modelsMax
            throw problem
        }
        for model in models where !(1...Limits.name).contains(model.utf8.count) {
            throw Problem(.badRequest, "found a model of \(model.utf8.count) bytes, expected 1 to \(Limits.name)")
        }
        self.init(models: models, site: site)
    }
}

extension HTTPRequestHead {
    /// True if the client asks for server-sent events.
    fileprivate var acceptsEventStream: Bool {
        headers.tokens("accept").contains { $0.lowercased().prefix { $0 != ";" && $0 != " " } == "text/event-stream" }
    }
}
