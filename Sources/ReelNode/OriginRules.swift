import ReelCore
public import ReelNet

/// Which pages of the web may use a node. A browser says where a page comes from (`Origin`), and other clients say
/// nothing: those are not meant here. A page that the node's own host has served may always.
///
/// Whose a host is, only its name says, and whoever owns a name can have it lead to a node in somebody else's network
/// or machine (DNS rebinding): the browser then takes that node for the page's own host. So without keys a name with a
/// dot counts only if the node was told that it is its own. By another name no page may publish or open a socket. What
/// a page reads from the host that it asks comes without `Origin`, like a program's request: that is refused only where
/// no program of another machine can be meant.
public struct OriginRules: Hashable, Sendable {
    /// As browsers write them, such as `https://app.example`; `*` stands for all.
    private let allowed: Set<String>
    /// Names by which the node is known, without ports.
    private let names: Set<String>
    /// Pages have no token: where there are keys, a name may be anybody's.
    private let hasKeys: Bool
    /// Only this machine reaches the node. Then a request by a name that is not known has been led here.
    private let isLocal: Bool

    /// What the settings of a node say.
    public init(_ node: NodeSettings) {
        allowed = node.allowedOrigins
        names = Set((node.allowedOrigins + [node.advertise, node.nodeURL].compactMap(\.self)).compactMap(Self.name))
        hasKeys = node.tokens != nil
        isLocal = (try? SocketAddress(parsing: node.listen))?.isLoopback != false
    }

    /// Whether this is an origin as browsers write it, or `*`.
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

    /// What the answer to this request has to carry, so that the page may read it. Throws 403 where the page may not
    /// even ask.
    public func fields(for request: HTTPRequestHead) throws(Problem) -> HTTPHeaders {
        var fields = HTTPHeaders()
        // A cache must not give one page's answer to another page.
        if !allowed.isEmpty, !allowed.contains("*") { fields.add("vary", "origin") }
        let isKnown = isKnown(request.host)
        guard isKnown || !isLocal else {
            throw Self.refusal(
                "found the host \(request.host), by which this node is not known, see --advertise and --allow-origin"
            )
        }
        let origins = request.headers.all("origin")
        if origins.isEmpty, isForeign(request) {
            throw Self.refusal("a page of another site asks, and says no origin that may use this node")
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
    /// `refused` is called with the reason.
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

    /// True for a request that a page of another site makes without `Origin`, such as for an image or a script. The
    /// page cannot read the answer, but it makes the node work, and it can learn from time and size (Fetch Metadata,
    /// W3C). A link to a document of the node may lie on any page.
    private func isForeign(_ request: HTTPRequestHead) -> Bool {
        guard !hasKeys, !allowed.contains("*"), request.headers.has("sec-fetch-site", token: "cross-site") else {
            return false
        }
        return request.method != "GET" || request.headers["sec-fetch-mode"] != "navigate"
            || request.headers["sec-fetch-dest"].map { $0 != "document" } ?? false
    }

    /// Whether a host, perhaps with a port, is surely not a stranger's name for this node: an address, a name without a
    /// dot, or one that the node was told.
    private func isKnown(_ host: String) -> Bool {
        guard !hasKeys, !allowed.contains("*"), host.utf8.contains(UInt8(ascii: ".")) else { return true }
        guard let name = Self.name(of: "http://" + host), name.contains(".") else { return true }
        return name.hasSuffix(".localhost") || names.contains(name) || (try? SocketAddress(name, port: 0)) != nil
    }

    /// The host's name in a URL, without a port; nil if it is an IPv6 address, or no URL.
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

    /// Prepares the exchange for what its request's page may do. False where that was the whole answer: the page may
    /// not ask, or its browser wanted to know just that.
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
