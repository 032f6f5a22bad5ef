import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The HTTP side of a snapshot node: requests about state, ranges from its index, and the routes that every node has.
final class SnapshotHTTP: HTTPHandler {
    enum Endpoint: Sendable {
        case events, head, streams, crowdedStreams, digests
        case state(StateRequest.Route)
        case node(NodeEndpoint)
    }

    private let node: SnapshotNode
    private let answers: NodeAnswers
    private let router: Router<Endpoint>
    private let tokens: TokenGate?
    private let origins: OriginRules
    private let largeInput = LargeInput()

    /// Makes the handler. `tokens` checks the rights of clients; nil: every client may read everything.
    init(_ node: SnapshotNode, answers: NodeAnswers, tokens: TokenGate?, origins: OriginRules) {
        self.tokens = tokens
        self.origins = origins
        self.node = node
        self.answers = answers
        router = Self.routes
    }

    /// The routes of a snapshot node; openapi.yaml documents them.
    static var routes: Router<Endpoint> {
        var router = Router<Endpoint>()
        router.add("GET", "/v1/streams/{stream}/events", query: ["after", "epoch", "limit"], .events)
        router.add("GET", "/v1/streams/{stream}/head", .head)
        router.addStateRoutes { .state($0) }
        router.addStreamList(.streams)
        router.addDigests(.digests)
        router.add("GET", "/v1/sites", .crowdedStreams)
        router.addNodeRoutes { .node($0) }
        return router
    }

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        answers.requests.watch(exchange, route: nil)
        guard origins.admit(exchange) else { return }
        var route: String?
        do throws(Problem) {
            let match = try router.match(request.head)
            route = match.pattern
            answers.requests.watch(exchange, route: route)
            let access = try access(match, request.head)
            switch match.endpoint {
            case .state(let route):
                let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
                largeInput.read(request, of: payer, exchange) {
                    { _ throws(Problem) in try StateRequest(route, match, request) }
                } then: { [node] question in
                    switch question {
                    case .success(var question):
                        question.payer = payer
                        node.respond(to: question, exchange)
                    case .failure(let problem): exchange.respond(problem.response)
                    }
                }
            case .node(let endpoint):
                exchange.respond(answers.response(endpoint, request.head, from: exchange.client))
            case .streams: node.respond(to: try StreamListRequest(match, request.head), for: access, exchange)
            case .digests:
                let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
                largeInput.read(request, of: payer, exchange) {
                    { _ throws(Problem) in try DigestsRequest(request) }
                } then: { [node] question in
                    switch question {
                    case .success(let question): node.respond(to: question, for: access, exchange)
                    case .failure(let problem): exchange.respond(problem.response)
                    }
                }
            case .crowdedStreams:
                exchange.respond(try CrowdedStream.response(node.crowdedStreams, of: node.log.epoch, for: access))
            case .head: node.respondWithHead(of: try match.stream, exchange)
            case .events:
                let after = try match.integer("after", from: -1) ?? .none
                let limit = Int(try match.integer("limit", from: 1, to: 10_000) ?? 1_000)
                node.respondWithEvents(
                    of: try match.stream,
                    after: after,
                    epoch: try match.epoch,
                    limit: limit,
                    for: Payer(access, exchange.client?.origin ?? Payer.unknownOrigin),
                    exchange
                )
            }
        } catch {
            answers.requests.audit(error, route, exchange.client)
            exchange.respond(error.response)
        }
    }

    /// Returns the rights of the client. Throws unless they include the right that the request needs.
    private func access(_ match: Router<Endpoint>.Match, _ head: HTTPRequestHead) throws(Problem) -> Access {
        switch match.endpoint {
        case .node(let endpoint):
            try answers.check(endpoint, head)
            return Access(nil)
        case .streams, .crowdedStreams, .digests: return try Access(tokens, head)
        case .state(let route):
            let access = try Access(tokens, head)
            try access.require(route, of: try match.stream)
            return access
        case .events, .head:
            let access = try Access(tokens, head)
            try access.requireRead(try match.stream)
            return access
        }
    }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        let problem = Problem(.notFound, "a snapshot node has no socket; ask a gateway")
        answers.requests.refused(problem, nil, offer.client)
        return .refuse(problem.response)
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
}

@available(*, unavailable)
extension SnapshotHTTP: Sendable {}
