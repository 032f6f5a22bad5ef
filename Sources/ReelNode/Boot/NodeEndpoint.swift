public import ReelCore
public import ReelLog
public import ReelNet

/// The routes that every node has, with their paths.
public enum NodeEndpoint: String, CaseIterable, Sendable {
    case cluster = "/v1/cluster"
    case health = "/healthz"
    case readiness = "/readyz"
    case metrics = "/metrics"
    case description = "/openapi.yaml"

    /// True if only an operator may use the route. Load balancers read the health without a token.
    var isForOperators: Bool { self == .cluster || self == .metrics }

    /// Returns true if a request is a health check: `GET` or `HEAD` of `/healthz` or `/readyz`.
    public static func isHealthCheck(_ head: HTTPRequestHead) -> Bool {
        ["GET", "HEAD"].contains(head.method) && ["/healthz", "/readyz"].contains(head.path)
    }
}

extension Router {
    /// Adds the routes that every node has.
    public mutating func addNodeRoutes(_ endpoint: (NodeEndpoint) -> Endpoint) {
        for node in NodeEndpoint.allCases { add("GET", node.rawValue, endpoint(node)) }
    }
}

/// Answers the requests of the routes that every node has.
public struct NodeAnswers: Sendable {
    private let log: CurrentLog
    private let announcer: Announcer
    private let metrics: Metrics
    private let health: @Sendable () -> NodeHealth
    private let tokens: TokenGate?
    private let hasAdminPort: Bool
    /// Watches the node's requests.
    public let requests: RequestWatch

    /// Makes the answers of a node.
    ///
    /// - Parameters:
    ///   - settings: The settings of the node.
    ///   - log: The log of the node.
    ///   - announcer: The announcer, which knows the nodes of the cluster.
    ///   - metrics: The metrics of the node.
    ///   - logger: The logger, for audit lines.
    ///   - health: Returns the current health. Called for each request of `/readyz`, on any loop.
    public init(
        _ settings: NodeSettings,
        log: CurrentLog,
        announcer: Announcer,
        metrics: Metrics,
        logger: Logger,
        health: @escaping @Sendable () -> NodeHealth
    ) {
        tokens = settings.tokens
        hasAdminPort = settings.adminListen != nil
        self.log = log
        self.announcer = announcer
        self.metrics = metrics
        self.health = health
        requests = RequestWatch(metrics, logger: logger)
    }

    /// Throws unless the clients' port answers this route to the client.
    ///
    /// - Throws: `not_found` for an operator's path if the node has an operator's port. On a node with keys, 401 or 403
    ///   for an operator's path unless the token gives the right `admin` for `*`.
    public func check(_ endpoint: NodeEndpoint, _ request: HTTPRequestHead) throws(Problem) {
        guard endpoint.isForOperators else { return }
        guard !hasAdminPort else {
            throw Problem(.notFound, "\(endpoint.rawValue) is answered only on the operator's port (--admin-listen)")
        }
        try Access(tokens, request).requireAdmin()
    }

    /// Returns the response of the clients' port to a request of one of these routes. `/readyz` is shorter if the node
    /// has an operator's port. On a node with keys it is also shorter, unless the client has the right `admin` or is on
    /// the same machine.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint of the route.
    ///   - request: The head of the request.
    ///   - client: The address of the client; nil: unknown.
    public func response(
        _ endpoint: NodeEndpoint,
        _ request: HTTPRequestHead,
        from client: SocketAddress?
    ) -> HTTPResponse {
        let isOperator = !hasAdminPort && (client?.isLoopback == true || Self.isOperator(request, tokens))
        return response(endpoint, isOperator: isOperator)
    }

    /// Returns true if there are no keys, or the request has a token with the right `admin` for `*`.
    static func isOperator(_ request: HTTPRequestHead, _ tokens: TokenGate?) -> Bool {
        guard let tokens else { return true }
        guard request.headers["authorization"] != nil else { return false }
        return (try? Access(tokens, request))?.isAdmin ?? false
    }

    /// Returns the response to a permitted request.
    ///
    /// - Parameters:
    ///   - isOperator: True if the client may see files and addresses.
    ///   - id: The id of this node for `/v1/cluster`; nil: it is omitted. The clients' port omits it, since one proxy
    ///     may serve several nodes.
    func response(
        _ endpoint: NodeEndpoint,
        isOperator: @autoclosure () -> Bool,
        id: String? = nil
    ) -> HTTPResponse {
        switch endpoint {
        case .cluster:
            return .json(announcer.clusterBody(of: log, at: id))
        case .health:
            return .json(Array(#"{"healthy":true}"#.utf8))
        case .readiness:
            let health = health()
            return .json(
                health.body(epoch: log.epoch, deployment: log.deployment, forOperator: isOperator()),
                status: health.isReady ? 200 : 503
            )
        case .metrics:
            return HTTPResponse(
                status: 200,
                headers: ["content-type": "text/plain; version=0.0.4; charset=utf-8"],
                body: Array(metrics.text().utf8)
            )
        case .description:
            return HTTPResponse(
                status: 200,
                headers: ["content-type": "application/yaml", "cache-control": "no-cache"],
                body: PackageResources.openapi_yaml
            )
        }
    }
}

extension HTTPResponse {
    /// Returns a JSON response that no cache stores.
    public static func json(_ body: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["content-type": "application/json", "cache-control": "no-store"],
            body: body
        )
    }
}

extension HTTPRequest {
    /// Reads the JSON object of the body. Throws 415 if `Content-Type` is not JSON, and the errors of `read`.
    public func json<R>(_ read: (JSONObject) throws(ReelError) -> R) throws(Problem) -> R {
        try requireJSON()
        do throws(ReelError) {
            return try body.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                try read(try JSONObject(Bytes(bytes), levels: ClientFrame.levels, shape: .badRequest))
            }
        } catch {
            throw Problem(error)
        }
    }

    /// Throws 415 if `Content-Type` is not JSON.
    private func requireJSON() throws(Problem) {
        guard let type = head.headers["content-type"] else { return }
        let media = type.split(separator: ";").first.map { $0.filter { $0 != " " }.lowercased() } ?? ""
        guard media == "application/json" || media.hasSuffix("+json") else {
            throw Problem(.badRequest, "found a body of \(type), expected application/json", status: 415)
        }
    }
}

extension NodeAnswers {
    /// Returns the refusal of a request by its route, its `Origin`, or the error that `check` throws; nil: the request
    /// is not refused. Counts the refusal and writes its audit line.
    ///
    /// - Parameters:
    ///   - head: The head of the request.
    ///   - origins: The rules for the `Origin`.
    ///   - router: The routes of the node.
    ///   - check: Throws the problem of a request that matches a route.
    public func refusal<Endpoint>(
        of head: HTTPRequestHead,
        by origins: OriginRules,
        _ router: Router<Endpoint>,
        _ check: (Router<Endpoint>.Match) throws(Problem) -> Void
    ) -> HTTPResponse? {
        var route: String?
        return origins.refusal(of: head) { () throws(Problem) in
            let match = try router.match(head)
            route = match.pattern
            try check(match)
        } refused: {
            requests.refused($0, route, head.client)
        }
    }

    /// Returns the response to a request that cannot be read, and counts it.
    public func refusal(of violation: HTTPViolation) -> HTTPResponse {
        requests.count(nil, violation.status)
        return Problem(violation).response
    }
}
