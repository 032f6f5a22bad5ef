public import ReelCore
public import ReelLog
public import ReelNet

/// The routes that every node has.
public enum NodeEndpoint: Sendable {
    /// `/v1/cluster`, `/healthz`, `/readyz`, `/metrics`, `/openapi.yaml`.
    case cluster, health, readiness, metrics, description

    /// Whether a node with keys wants to see a token. Load balancers and monitors have none.
    public var isGuarded: Bool { self == .cluster }

    /// Whether a request is a health check: `GET` or `HEAD` of `/healthz` or `/readyz`.
    public static func isHealthCheck(_ head: HTTPRequestHead) -> Bool {
        ["GET", "HEAD"].contains(head.method) && ["/healthz", "/readyz"].contains(head.path)
    }
}

extension Router {
    /// Adds the routes that every node has.
    public mutating func addNodeRoutes(_ endpoint: (NodeEndpoint) -> Endpoint) {
        add("GET", "/v1/cluster", endpoint(.cluster))
        add("GET", "/healthz", endpoint(.health))
        add("GET", "/readyz", endpoint(.readiness))
        add("GET", "/metrics", endpoint(.metrics))
        add("GET", "/openapi.yaml", endpoint(.description))
    }
}

/// What a node says of itself and of the cluster.
public struct NodeAnswers: Sendable {
    private let log: CurrentLog
    private let announcer: Announcer
    private let metrics: Metrics
    private let health: @Sendable () -> NodeHealth
    /// Watches the node's requests.
    public let requests: RequestWatch

    /// `health` says how the node does now; it is called for each request.
    public init(
        log: CurrentLog,
        announcer: Announcer,
        metrics: Metrics,
        journal: Journal,
        health: @escaping @Sendable () -> NodeHealth
    ) {
        self.log = log
        self.announcer = announcer
        self.metrics = metrics
        self.health = health
        requests = RequestWatch(metrics, journal: journal)
    }

    /// The answer to a request of one of these routes. On a node with keys, `/readyz` says more to a client that has a
    /// valid token or asks from the same machine.
    public func response(
        _ endpoint: NodeEndpoint,
        _ request: HTTPRequestHead,
        from client: SocketAddress?,
        tokens: TokenGate?
    ) -> HTTPResponse {
        func isOperator() -> Bool {
            guard let tokens, client?.isLoopback != true else { return true }
            return request.headers["authorization"] != nil && (try? Access(tokens, request)) != nil
        }
        switch endpoint {
        case .cluster:
            return .json(announcer.clusterBody(of: log))
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
