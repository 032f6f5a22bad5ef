import ReelCore
public import ReelNet

/// The rules for web pages that use a node. A browser sends the origin of a page (`Origin`). Other clients send none,
/// and the rules do not concern them. A page that the node's own host has served may always use the node.
///
/// Only the name identifies a host. The owner of a name can resolve it to a node in another network or machine (DNS
/// rebinding). The browser then takes that node for the page's own host. So a node without keys accepts a name with a
/// dot only if its settings contain the name. A page of any other name may not publish or open a WebSocket.
///
/// A page reads from its own host without `Origin`, like a program. Such a request is refused only if no program of
/// another machine can have sent it.
public struct OriginRules: Hashable, Sendable {
    /// The allowed origins as browsers write them, such as `https://app.example`; `*` means all.
    private let allowed: Set<String>
    /// The names of the node, without ports.
    private let names: Set<String>
    /// True if the node has keys. Web pages have no token, so then any name may be used.
    private let hasKeys: Bool
    /// True if only this machine reaches the node. A request with an unknown name is then a DNS rebinding.
    private let isLocal: Bool

    /// The rules of a node with these settings.
    public init(_ node: NodeSettings) {
        allowed = node.allowedOrigins
        names = Set((node.allowedOrigins + [node.advertise, node.nodeURL].compactMap(\.self)).compactMap(Self.name))
        hasKeys = node.tokens != nil
        isLocal = (try? SocketAddress(parsing: node.listen))?.isLoopback != false
    }

    /// Returns true if `text` is an origin as browsers write it, or `*`.
    public static func isOrigin(_ text: String) -> Bool {
        if text == "*" { return true }
        guard let scheme = scheme(of: text) else { return false }
        let authority = text.dropFirst(scheme.count)
        return !authority.isEmpty && text == text.lowercased()
            && authority.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !#"/?#@\*"#.utf8.contains($0) }
    }

    private static func scheme(of text: String) -> String? {
        ["http://", "https://"].first { text.hasPrefix($0) }
    }

    /// Returns the header fields of the response that let the page read it. Throws 403 if the page may not use the
    /// node.
    public func fields(for request: HTTPRequestHead) throws(Problem) -> HTTPHeaders {
        var fields = HTTPHeaders()
        // A cache must not give one page's response to another page.
        if !allowed.isEmpty, !allowed.contains("*") { fields.add("vary", "origin") }
        let isKnown = isKnown(request.host)
        guard isKnown || !isLocal else {
            throw Self.refusal(
                "found the host \(request.host), which is not a name of this node, see --advertise and --allow-origin"
            )
        }
        let origins = request.headers.all("origin")
        if origins.isEmpty, isForeign(request) {
            throw Self.refusal("a page of another site sent this request, without an origin that may use this node")
        }
        guard let origin = origins.first, !isKnown || !isOwn(origin, request) || origins.count > 1 else {
            return fields
        }
        guard origins.count == 1, allowed.contains(origin) || allowed.contains("*") else {
            throw Self.refusal("pages of \(origin) may not use this node, see --allow-origin")
        }
        fields.add("access-control-allow-origin", allowed.contains("*") ? "*" : origin)
        fields.add("access-control-expose-headers", "etag, retry-after, \(UnpublishedStream.header)")
        return fields
    }

    private static func refusal(_ detail: String) -> Problem {
        var problem = Problem(.forbidden, detail)
        problem.isOfPage = true
        return problem
    }

    /// Returns the refusal of a request by these rules or by the error that `check` throws; nil: it is not refused.
    ///
    /// - Parameters:
    ///   - request: The head of the request.
    ///   - check: Throws the problem of a request that these rules permit.
    ///   - refused: Called with the problem of a refused request.
    public func refusal(
        of request: HTTPRequestHead,
        _ check: () throws(Problem) -> Void,
        refused: (Problem) -> Void
    ) -> HTTPResponse? {
        var headers = HTTPHeaders()
        do throws(Problem) {
            headers = try fields(for: request)
            try check()
            return nil
        } catch {
            refused(error)
            var response = error.response
            for field in headers.fields { response.headers.add(field.name, field.value) }
            return response
        }
    }

    /// Returns true for a request that a page of another site makes without `Origin`, such as for an image or a script.
    /// The page cannot read the response, but it causes work, and it can learn from time and size (Fetch Metadata,
    /// W3C). A link to a document of the node is permitted on any page.
    private func isForeign(_ request: HTTPRequestHead) -> Bool {
        guard !hasKeys, !allowed.contains("*"), request.headers.has("sec-fetch-site", token: "cross-site") else {
            return false
        }
        return request.method != "GET" || request.headers["sec-fetch-mode"] != "navigate"
            || request.headers["sec-fetch-dest"].map { $0 != "document" } ?? false
    }

    /// Returns true if a host, with or without a port, cannot be an attacker's name for this node. That is an address,
    /// a name without a dot, or a name in the node's settings.
    private func isKnown(_ host: String) -> Bool {
        guard !hasKeys, !allowed.contains("*"), host.utf8.contains(UInt8(ascii: ".")) else { return true }
        guard let name = Self.name(of: "http://" + host), name.contains(".") else { return true }
        return name.hasSuffix(".localhost") || names.contains(name) || (try? SocketAddress(name, port: 0)) != nil
    }

    /// Returns the host name in a URL, without a port; nil: the host is an IPv6 address, or the text is no URL.
    private static func name(of url: String) -> String? {
        guard let scheme = scheme(of: url) else { return nil }
        let authority = url.dropFirst(scheme.count).prefix { $0 != "/" }
        guard !authority.hasPrefix("[") else { return nil }
        let name = authority.prefix { $0 != ":" }.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    private func isOwn(_ origin: String, _ request: HTTPRequestHead) -> Bool {
        guard let scheme = Self.scheme(of: origin) else { return false }
        return origin.dropFirst(scheme.count).lowercased() == request.host.lowercased()
    }

    /// Adds the header fields that the page of the request needs to the exchange. Returns false if the exchange is
    /// already answered: the page may not use the node, or the request was a CORS preflight.
    public func admit(_ exchange: HTTPExchange) -> Bool {
        let request = exchange.request
        do throws(Problem) {
            exchange.moreHeaders = try fields(for: request)
        } catch {
            exchange.respond(error.response)
            return false
        }
        guard request.method == "OPTIONS", request.headers["origin"] != nil,
            request.headers["access-control-request-method"] != nil
        else { return true }
        exchange.respond(
            HTTPResponse(
                status: 204,
                headers: [
                    "access-control-allow-methods": "GET, POST",
                    "access-control-allow-headers": "authorization, content-type, idempotency-key, if-none-match,"
                        + " last-event-id",
                    "access-control-max-age": "600",
                ]
            )
        )
        return false
    }
}
