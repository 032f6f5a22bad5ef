import ReelCore
public import ReelNet

/// The operator's port of a node: metrics, full health and the cluster. It has its own loop and a small limit of
/// connections. So it answers even if clients take all connections or all time of the other loops.
public final class AdminPort: Sendable {
    /// The address where the port listens.
    public let address: SocketAddress
    private let server: LoopBound<HTTPServer>

    /// The maximum number of open connections. Health checks are answered beyond it, too.
    static let connectionsMax = 64
    /// The maximum size of a request's body in bytes: no request of this port has a body.
    private static let bodyBytesMax = 1 << 10

    /// Listens on `settings.adminListen`; nil if that is nil. Not on an event loop.
    ///
    /// - Parameters:
    ///   - settings: The settings of the node.
    ///   - answers: The answers of the node.
    ///   - logger: The logger of the node.
    /// - Throws: `NetError` if the node cannot listen on the address, or the process has no descriptor or thread left.
    public init?(_ settings: NodeSettings, answers: NodeAnswers, logger: Logger) throws {
        guard let place = settings.adminListen else { return nil }
        let wanted = try SocketAddress(parsing: place)
        let loop = try EventLoop()
        do {
            (server, address) = try loop.sync {
                var bounds = HTTPServer.Settings(settings)
                bounds.limits.body = Self.bodyBytesMax
                // Prometheus connects directly, so the addresses that proxies report are ignored.
                bounds.trustedProxies = AddressRanges()
                // No other machine can intercept loopback traffic, and few certificates are valid for it.
                if wanted.isLoopback { bounds.tls = nil }
                let server = HTTPServer(
                    on: loop,
                    bounds,
                    gate: ConnectionGate(limit: Self.connectionsMax),
                    handler: AdminHTTP(settings, answers: answers, wanted)
                )
                do throws(NetError) {
                    return (LoopBound(server, on: loop), try server.listen(on: wanted))
                } catch {
                    throw Self.refusal(error)
                }
            }
        } catch {
            loop.stop()
            loop.join()
            throw error
        }
        let isSecure = settings.tls != nil && !wanted.isLoopback
        logger.info(
            "listening for the operator",
            ["address": "\(address)", "scheme": isSecure ? "https" : "http"]
        )
    }

    /// Throws the error that listening on `place` (`HOST:PORT`) would throw now.
    public static func checkThatItIsFree(_ place: String) throws(NetError) {
        let address = try SocketAddress(parsing: place)
        do throws(NetError) {
            try address.checkThatItIsFree()
        } catch {
            throw refusal(error)
        }
    }

    /// Returns the error with the name of the setting and the remedy.
    private static func refusal(_ error: NetError) -> NetError {
        let advice =
            switch error.code {
            case .addressInUse: "; end the process that listens there, or name another port"
            case .permissionDenied: "; ports below 1024 need root or CAP_NET_BIND_SERVICE: name another port"
            default: ""
            }
        return NetError(
            error.code == .badAddress ? .badAddress : .other,
            "--admin-listen: \(error.message)\(advice)"
        )
    }

    /// Stops listening and closes all connections. Not on its loop.
    public func close() {
        server.loop.stop()
        server.loop.join()
    }
}

extension NodeSettings {
    /// Returns the URL by which other nodes reach the operator's port; nil: they cannot reach it.
    ///
    /// - Parameters:
    ///   - admin: The address where the port listens.
    ///   - url: The URL of the node. It gives the host if the port listens on all addresses.
    public func adminURL(_ admin: SocketAddress, of url: String) -> String? {
        guard let node = HTTPOrigin(url) else { return nil }
        guard !admin.isLoopback else {
            // On another machine this address would be that machine's own.
            return (try? SocketAddress(node.host, port: 0))?.isLoopback == true ? "http://\(admin)" : nil
        }
        let host = ["0.0.0.0", "::"].contains(admin.host) ? node.host : admin.host
        let place = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(admin.port)" : "\(host):\(admin.port)"
        return "\(tls == nil ? "http" : "https")://\(place)"
    }
}

/// The HTTP side of the operator's port.
private final class AdminHTTP: HTTPHandler {
    private let answers: NodeAnswers
    /// The node's id.
    private let id: String
    private let router: Router<NodeEndpoint>
    private let origins: OriginRules
    /// Checks tokens; nil: there are no keys, or only this machine reaches the port.
    private let tokens: TokenGate?

    init(_ settings: NodeSettings, answers: NodeAnswers, _ address: SocketAddress) {
        self.answers = answers
        id = settings.id
        tokens = address.isLoopback ? nil : settings.tokens
        // No web page may use this port, least of all one that reaches the loopback by DNS rebinding.
        var node = settings
        node.listen = "\(address)"
        node.tokens = tokens
        node.allowedOrigins = []
        origins = OriginRules(node)
        var router = Router<NodeEndpoint>()
        for endpoint in NodeEndpoint.allCases where endpoint != .description {
            router.add("GET", endpoint.rawValue, endpoint)
        }
        self.router = router
    }

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        answers.requests.watch(exchange, route: nil)
        guard origins.admit(exchange) else { return }
        var route: String?
        do throws(Problem) {
            let match = try router.match(request.head)
            route = match.pattern
            answers.requests.watch(exchange, route: route)
            if match.endpoint.isForOperators { try Access(tokens, request.head).requireAdmin() }
            let isOperator = NodeAnswers.isOperator(request.head, tokens)
            exchange.respond(answers.response(match.endpoint, isOperator: isOperator, id: id))
        } catch {
            answers.requests.audit(error, route, exchange.client)
            var problem = error
            if error.code == .notFound { problem.detail = Self.elsewhere }
            exchange.respond(problem.response)
        }
    }

    private static let elsewhere =
        "found no path of the operator's port, expected /metrics, /readyz, /healthz or /v1/cluster; clients"
        + " use the address of --listen"

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        let problem = Problem(.notFound, Self.elsewhere)
        answers.requests.refused(problem, nil, offer.client)
        return .refuse(problem.response)
    }

    func isHealthCheck(_ head: HTTPRequestHead) -> Bool { NodeEndpoint.isHealthCheck(head) }

    func refusal(of violation: HTTPViolation) -> HTTPResponse {
        answers.refusal(of: violation)
    }
}

@available(*, unavailable)
extension AdminHTTP: Sendable {}
