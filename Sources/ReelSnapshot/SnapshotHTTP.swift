import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The HTTP side of a snapshot node: questions about state, ranges from its index, and what every node has.
final class SnapshotHTTP: HTTPHandler {
    enum Endpoint: Sendable {
        case events, head
        case state(StateRequest.Route)
        case node(NodeEndpoint)
    }

    private let node: SnapshotNode
    private let answers: NodeAnswers
    private let router: Router<Endpoint>
    private let tokens: TokenGate?
    private let origins: OriginRules

    /// `tokens`: who may read what; nil: everybody everything.
    init(_ node: SnapshotNode, answers: NodeAnswers, tokens: TokenGate?, origins: OriginRules) {
        self.tokens = tokens
        self.origins = origins
        self.node = node
        self.answers = answers
        router = Self.routes
    }

    /// What a snapshot node answers; openapi.yaml says the same.
    static var routes: Router<Endpoint> {
        var router = Router<Endpoint>()
        router.add("GET", "/v1/streams/{stream}/events", query: ["after", "epoch", "limit"], .events)
        router.add("GET", "/v1/streams/{stream}/head", .head)
        router.addStateRoutes { .state($0) }
        router.addNodeRoutes { .node($0) }
        return router
    }

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        guard origins.admit(exchange) else { return }
        do throws(Problem) {
            let match = try router.match(request.head)
            if case .node(let endpoint) = match.endpoint {
                if endpoint.isGuarded { _ = try Access(tokens, request.head) }
            } else {
                try Access(tokens, request.head).requireRead(try match.stream)
            }
            switch match.endpoint {
            case .state(let route): node.respond(to: try StateRequest(route, match, request), exchange)
            case .node(let endpoint): exchange.respond(answers.response(endpoint))
            case .head: node.respondWithHead(of: try match.stream, exchange)
            case .events:
                let after = try match.integer("after", from: -1) ?? .none
                let limit = Int(try match.integer("limit", from: 1, to: 10_000) ?? 1_000)
                node.respondWithEvents(
                    of: try match.stream,
                    after: after,
                    epoch: try match.epoch,
                    limit: limit,
                    exchange
                )
            }
        } catch {
            exchange.respond(error.response)
        }
    }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        .refuse(Problem(.notFound, "a snapshot node has no socket; ask a gateway").response)
    }

    func refusal(of violation: HTTPViolation) -> HTTPResponse {
        Problem(violation).response
    }
}

@available(*, unavailable)
extension SnapshotHTTP: Sendable {}
