import ReelLog
import ReelNet
import ReelNode

/// Sends the questions of one loop to other nodes. Its users decide which node to ask, and what an answer means. All of
/// them share the idle connections. On its loop only.
final class PeerClient {
    let access: PeerAccess
    let http: HTTPClient
    private let logger: Logger

    /// The header of each question of a gateway. A node that gets it answers from its own state.
    static let passedHeader = "reel-passed"

    init(on loop: EventLoop, _ settings: NodeSettings, logger: Logger) {
        access = PeerAccess(settings)
        // A connection for each question about old events, and as many for all others.
        http = HTTPClient(on: loop, maxIdle: 2 * SnapshotEventsClient.underWayMax)
        self.logger = logger
    }

    var loop: EventLoop { http.loop }

    /// Returns the request that asks a node; nil: `PeerAccess` forbids that.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - authorization: `Authorization` of the client, which the node checks; nil: the client has sent none.
    ///   - timeout: The timeout for connecting, then for the node's silence, and for the answer to `fetch`.
    ///   - question: Makes the request, given the origin of the node.
    func request(
        to node: NodeAnnouncement,
        authorization: String? = nil,
        timeout: Duration,
        _ question: (HTTPOrigin) -> HTTPClientRequest
    ) -> HTTPClientRequest? {
        guard let origin = try? access.origin(of: node) else { return nil }
        var request = question(origin)
        if origin.isSecure { request.tls = access.tls }
        request.headers.add(Self.passedHeader, "1")
        if let authorization { request.headers.add("authorization", authorization) }
        request.timeout = timeout
        return request
    }

    /// Sends a request, and passes on the answer, of at most `bytesMax` bytes. A node that sends the answer in small
    /// pieces does not delay the client beyond the request's timeout: then the error is `timedOut`.
    func fetch(
        _ request: HTTPClientRequest,
        bytesMax: Int,
        then: @escaping (Result<HTTPResponse, NetError>) -> Void
    ) {
        var timer: LoopTimer?
        var isLate = false
        let call = http.fetch(request, maxBody: bytesMax) { result in
            timer?.cancel()
            timer = nil
            then(isLate ? .failure(NetError(.timedOut, "no whole answer within \(request.timeout)")) : result)
        }
        timer = loop.timer(after: request.timeout) {
            isLate = true
            call.cancel()
        }
    }

    /// Writes a log line about a node, unless `lines` leaves it out. The detail is not for clients: it may name an
    /// address.
    func warn(_ event: String, _ node: NodeAnnouncement, _ detail: String, _ lines: inout LineLimiter) {
        guard let unsaid = lines.admit(nowMs: loop.nowMs) else { return }
        logger.warning(event, ["node": node.id, "url": node.url, "detail": detail, "lines_left_out": "\(unsaid)"])
    }
}

@available(*, unavailable)
extension PeerClient: Sendable {}
