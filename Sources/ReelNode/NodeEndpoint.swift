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

    /// True if only an operator may ask. Load balancers ask for the health, and have no token.
    var isForOperators: Bool { self == .cluster || self == .metrics }

    /// Whether a request is a health check: `GET` or `HEAD` of `/healthz` or `/readyz`.
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

/// What a node says of itself and of the cluster.
public struct NodeAnswers: Sendable {
    private let log: CurrentLog
    private let announcer: Announcer
    private let metrics: Metrics
    private let health: @Sendable () -> NodeHealth
    private let tokens: TokenGate?
    private let hasAdminPort: Bool
    /// Watches the node's requests.
    public let requests: RequestWatch

    /// `health` says how the node does now; it is called for each request.
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

    /// Throws unless the clients' port answers this route to the client: `not_found` for an operator's path that is on
    /// the operator's port, and on a node with keys 401 or 403 unless the token gives the right `admin` for `*`.
    public func check(_ endpoint: NodeEndpoint, _ request: HTTPRequestHead) throws(Problem) {
        guard endpoint.isForOperators else { return }
        guard !hasAdminPort else {
            throw Problem(.notFound, "\(endpoint.rawValue) is answered only on the operator's port (--admin-listen)")
        }
        try Access(tokens, request).requireAdmin()
    }

    /// The answer of the clients' port to a request of one of these routes. `/readyz` says less where there is an
    /// operator's port, and on a node with keys unless the client has the right `admin` or asks from the same machine.
    public func response(
        _ endpoint: NodeEndpoint,
        _ request: HTTPRequestHead,
        from client: SocketAddress?
    ) -> HTTPResponse {
        let isOperator = !hasAdminPort && (client?.isLoopback == true || Self.isOperator(request, tokens))
        return response(endpoint, isOperator: isOperator)
    }

    /// True if there are no keys, or the request has a token with the right `admin` for `*`.
    static func isOperator(_ request: HTTPRequestHead, _ tokens: TokenGate?) -> Bool {
        guard let tokens else { return true }
        guard request.headers["authorization"] != nil else { return false }
        return (try? Access(tokens, request))?.isAdmin ?? false
    }

    /// The answer to a request that may have it. `isOperator`: its client may know files and addresses. `id`: of this
    /// node, where `/v1/cluster` says it; the clients' port may stand behind a proxy for several nodes.
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
    /// An answer of JSON that no cache keeps.
    public static func json(_ body: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["content-type": "application/json", "cache-control": "no-store"],
            body: body
        )
    }
}

extension HTTPRequest {
    /// Reads the JSON object of the body. Throws 415 if it is said to be something else, and what `read` throws.
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

    /// Throws 415 if the body is said to be something else than JSON.
    private func requireJSON() throws(Problem) {
        guard let type = head.headers["content-type"] else { return }
        let media = type.split(separator: ";").first.map { $0.filter { $0 != " " }.lowercased() } ?? ""
        guard media == "application/json" || media.hasSuffix("+json") else {
            throw Problem(.badRequest, "found a body of \(type), expected application/json", status: 415)
        }
    }
}

extension NodeAnswers {
    /// Returns the refusal of a request by its route, `Origin`, or the error that `check` throws; nil: the request is
    /// not refused. Counts the refusal and writes its audit line.
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

    /// Returns the answer to a request that cannot be read, and counts it.
    public func refusal(of violation: HTTPViolation) -> HTTPResponse {
        requests.count(nil, violation.status)
        return Problem(violation).response
    }
}
