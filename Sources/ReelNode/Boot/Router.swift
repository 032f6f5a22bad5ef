import ReelCore
public import ReelNet

/// A segment of a pattern: a fixed text, or a named placeholder.
private enum PathSegment {
    case text(String)
    case name(String)
}

/// The routes of a node: method and path to an endpoint. A GET route also serves HEAD (RFC 9110, 9.3.2). The path is
/// split into segments before percent-decoding, so that a `%2F` in a name stays in its segment.
public struct Router<Endpoint: Sendable>: Sendable {
    /// The route of a request, with the values of its placeholders and parameters.
    public struct Match: Sendable {
        /// The endpoint of the route.
        public var endpoint: Endpoint
        /// The route's pattern, such as `/v1/streams/{stream}/head`.
        public var pattern: String
        /// The decoded segments in place of `{name}` in the route's pattern, by name.
        public var path: [String: String]
        /// The decoded query parameters, each at most once.
        public var query: [String: String]
    }

    private struct Route: Sendable {
        var method: String
        var pattern: String
        var segments: [PathSegment]
        var query: Set<String>
        var endpoint: Endpoint
    }

    private var routes: [Route] = []

    /// A router without routes: every request is `not_found`.
    public init() {}

    /// Adds a route.
    ///
    /// - Parameters:
    ///   - method: The method, such as `GET`.
    ///   - pattern: The path, in which `{name}` is a placeholder for one segment.
    ///   - query: The names of the permitted query parameters.
    ///   - endpoint: The endpoint of the route.
    public mutating func add(_ method: String, _ pattern: String, query: Set<String> = [], _ endpoint: Endpoint) {
        let segments = pattern.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { part in
            part.hasPrefix("{") ? PathSegment.name(String(part.dropFirst().dropLast())) : .text(String(part))
        }
        routes.append(Route(method: method, pattern: pattern, segments: segments, query: query, endpoint: endpoint))
    }

    /// The methods and patterns of the routes, each with the query parameters that it permits.
    public var table: [(method: String, pattern: String, query: Set<String>)] {
        routes.map { ($0.method, $0.pattern, $0.query) }
    }

    /// Returns the route of a request.
    ///
    /// - Throws: 404 if no route has the path; 405 with the allowed methods; 400 for a malformed target, and for an
    ///   unknown or repeated query parameter.
    public func match(_ head: HTTPRequestHead) throws(Problem) -> Match {
        guard let segments = head.segments, let parameters = head.parameters else {
            throw Problem(.badRequest, "the request's target is not percent-encoded UTF-8")
        }
        return try match(method: head.method, segments: segments, parameters: parameters)
    }

    func match(
        method: String,
        segments: [String],
        parameters: [(name: String, value: String)]
    ) throws(Problem) -> Match {
        var allowed: [String] = []
        for route in routes {
            guard let path = Self.match(route.segments, segments) else { continue }
            let methods = route.method == "GET" ? ["GET", "HEAD"] : [route.method]
            guard methods.contains(method) else {
                allowed += methods
                continue
            }
            let query = try Self.query(parameters, allowed: route.query)
            return Match(endpoint: route.endpoint, pattern: route.pattern, path: path, query: query)
        }
        guard allowed.isEmpty else {
            let expected = allowed.sorted()
            var problem = Problem(.methodNotAllowed, "found \(method), expected \(expected.joined(separator: " or "))")
            problem.allow = expected
            throw problem
        }
        throw Problem(.notFound, "there is no such path")
    }

    private static func match(_ pattern: [PathSegment], _ segments: [String]) -> [String: String]? {
        guard pattern.count == segments.count else { return nil }
        var path: [String: String] = [:]
        for index in pattern.indices {
            let found = segments[index]
            switch pattern[index] {
            case .text(let text): if text != found { return nil }
            case .name(let name):
                guard !found.isEmpty else { return nil }
                path[name] = found
            }
        }
        return path
    }

    private static func query(
        _ parameters: [(name: String, value: String)],
        allowed: Set<String>
    ) throws(Problem) -> [String: String] {
        var query: [String: String] = [:]
        for (name, value) in parameters {
            guard allowed.contains(name) else {
                let expected = allowed.isEmpty ? "none" : allowed.sorted().joined(separator: ", ")
                throw Problem(.badRequest, "found the query parameter '\(name)', expected \(expected)")
            }
            guard query.updateValue(value, forKey: name) == nil else {
                throw Problem(.badRequest, "found the query parameter '\(name)' twice, expected it once")
            }
        }
        return query
    }
}
