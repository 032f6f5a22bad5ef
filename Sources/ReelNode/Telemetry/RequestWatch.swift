internal import ReelBase
public import ReelCore
public import ReelNet
import Synchronization

/// Counts requests by route and status, measures the time to the first byte of each response, and writes audit lines
/// for clients that lack a right. The loops of a node share it. From any thread.
public final class RequestWatch: Sendable {
    private struct Kind: Hashable {
        var route: String
        var code: Int
    }

    private struct State {
        var counters: [Kind: Counter] = [:]
        var times: [String: Histogram] = [:]
        var lines = LineLimiter(lines: 10, windowMs: 1_000)
    }

    private let metrics: Metrics
    private let logger: Logger
    private let state = Mutex(State())

    private static let bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 30_000].map {
        Duration.milliseconds($0)
    }

    init(_ metrics: Metrics, logger: Logger) {
        self.metrics = metrics
        self.logger = logger
        // Both families exist from the start.
        _ = meters("/metrics", 200)
    }

    /// Watches a request until its response begins. `route` is the pattern of the matched route; nil: none. The number
    /// of labels depends on routes and statuses only, not on the paths that clients send.
    public func watch(_ exchange: HTTPExchange, route: String?) {
        let (route, begun) = (route ?? "none", ContinuousClock.now)
        exchange.answered = { [self] code in
            let (counter, time) = meters(route, code)
            counter.add()
            time.record(ContinuousClock.now - begun)
        }
    }

    /// Counts a response without an exchange: to a handshake, or before the request was read completely.
    public func count(_ route: String?, _ code: Int) { meters(route ?? "none", code).0.add() }

    /// Counts a refusal without an exchange, and writes its audit line.
    ///
    /// - Parameters:
    ///   - problem: The problem that the client gets.
    ///   - route: The pattern of the matched route; nil: none.
    ///   - client: The address of the client; nil: unknown.
    public func refused(_ problem: Problem, _ route: String?, _ client: SocketAddress?) {
        count(route, problem.status)
        audit(problem, route, client)
    }

    /// Writes the audit line of a problem of a token or a right; no line for other problems. A refused page gets no
    /// line, since any page could use up the limit of lines.
    ///
    /// - Parameters:
    ///   - problem: The problem that the client gets.
    ///   - route: The pattern of the matched route; nil: none.
    ///   - client: The address of the client; nil: unknown.
    public func audit(_ problem: Problem, _ route: String?, _ client: SocketAddress?) {
        guard !problem.isOfPage else { return }
        audit(ReelError(problem.code, problem.detail), route, client, subject: problem.subject)
    }

    /// Writes an audit line if the error is a missing token or right; at most ten lines a second.
    ///
    /// - Parameters:
    ///   - error: The error that the client gets.
    ///   - route: The pattern of the matched route, since a target may contain a token; nil: none.
    ///   - client: The address of the client; nil: unknown.
    ///   - subject: The subject of the token; nil: there is no valid token.
    public func audit(_ error: ReelError, _ route: String?, _ client: SocketAddress?, subject: String? = nil) {
        guard error.code == .unauthorized || error.code == .forbidden else { return }
        guard let leftOut = state.withLock({ $0.lines.admit(nowMs: WallClock.nowMs()) }) else { return }
        logger.audit(
            "refused",
            [
                "code": error.code.rawValue, "client": client?.host ?? "unknown", "subject": subject ?? "none",
                "route": route ?? "none", "detail": error.message, "lines_left_out": "\(leftOut)",
            ]
        )
    }

    private func meters(_ route: String, _ code: Int) -> (Counter, Histogram) {
        state.withLock { state in
            let kind = Kind(route: route, code: code)
            let counter =
                state.counters[kind]
                ?? metrics.counter(
                    "reel_http_requests_total",
                    "Requests answered, by route and status.",
                    labels: ["route": route, "code": "\(code)"]
                )
            state.counters[kind] = counter
            let time =
                state.times[route]
                ?? metrics.histogram(
                    "reel_http_request_seconds",
                    "From a request to the first byte of its answer, by route; of streams and long polls, too.",
                    bounds: Self.bounds,
                    labels: ["route": route]
                )
            state.times[route] = time
            return (counter, time)
        }
    }
}
