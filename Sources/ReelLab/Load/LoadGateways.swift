import ReelNet

/// The gateways of a load run: their addresses, the trusted authorities, and the token.
struct LoadGateways {
    let urls: [String]
    let token: String?
    private let trust: TLSClient?

    /// Checks the addresses, and reads the authorities if they are needed.
    init(_ plan: LoadPlan) throws {
        (urls, token) = (plan.urls, plan.token)
        for url in plan.urls where HTTPOrigin(url) == nil {
            throw LoadFailure(.plan, "found `\(url)`, expected a gateway's address as http:// or https://HOST:PORT")
        }
        let speaksTLS = plan.authorities != nil || plan.urls.contains { HTTPOrigin($0)?.isSecure ?? false }
        trust = speaksTLS ? try TLSClient(authorities: plan.authorities) : nil
    }

    /// Returns the WebSocket target of a gateway; nil for an invalid URL.
    func socket(_ url: String) -> WebSocketTarget? {
        guard let origin = HTTPOrigin(url) else { return nil }
        var target = WebSocketTarget(
            host: origin.host,
            port: origin.port,
            path: "/v1/socket",
            subprotocols: ["reel.v1"]
        )
        target.tls = origin.isSecure ? trust : nil
        return target
    }

    /// Returns a GET request to this node. Nil for an invalid URL, or for TLS without trusted authorities. If the
    /// gateways use TLS, the token is sent over TLS only.
    func request(_ target: String, of url: String) -> HTTPClientRequest? {
        guard let origin = HTTPOrigin(url), !origin.isSecure || trust != nil else { return nil }
        var request = HTTPClientRequest("GET", host: origin.host, port: origin.port, target: target)
        request.tls = origin.isSecure ? trust : nil
        if let token, origin.isSecure || trust == nil { request.headers.add("authorization", "Bearer \(token)") }
        return request
    }
}
