import ReelBase
import ReelLog
import ReelNet
import ReelNode

/// The rules and credentials by which a gateway reaches the nodes that have announced themselves.
///
/// A question carries the client's token. The client has sent its token over TLS to a gateway that speaks TLS. Such a
/// gateway asks no node over plain HTTP: a writer of the node list must not get the token by naming an `http` address.
struct PeerAccess: Sendable {
    /// The certificates that are trusted; nil: no node is asked over TLS.
    let tls: TLSClient?
    private let requiresTLS: Bool

    /// The access that the settings of the gateway give.
    init(_ node: NodeSettings) {
        self.init(tls: node.peerTLS, requiresTLS: node.tls != nil)
    }

    /// `requiresTLS`: true if no node is asked without TLS.
    init(tls: TLSClient?, requiresTLS: Bool) {
        self.tls = tls
        self.requiresTLS = requiresTLS
    }

    /// The reason why a node is not asked.
    struct Obstacle: Error, Equatable {
        var detail: String
    }

    /// Returns the origin of a node. Throws the reason if it must not be asked.
    func origin(of node: NodeAnnouncement) throws(Obstacle) -> HTTPOrigin {
        guard let origin = HTTPOrigin(node.url) else {
            throw Obstacle(detail: "its address cannot be used: \(node.url)")
        }
        if origin.isSecure, tls == nil {
            throw Obstacle(detail: "its address is \(origin), and this node trusts no certificate authorities")
        }
        if !origin.isSecure, requiresTLS {
            throw Obstacle(detail: "its address is \(origin); this node speaks TLS, and sends no token over plain HTTP")
        }
        return origin
    }

    /// True if the node can be asked.
    func canAsk(_ node: NodeAnnouncement) -> Bool { (try? origin(of: node)) != nil }
}

/// The snapshot nodes that are not asked because of their addresses. Each of them is reported once.
struct UnaskedPeers {
    private let access: PeerAccess
    private var details: [String: String] = [:]
    private var lines = LineLimiter(lines: 10, windowMs: 60_000)

    init(_ access: PeerAccess) {
        self.access = access
    }

    /// Checks the addresses of the other nodes. Returns the nodes that are not asked and were not reported yet, with
    /// the reason.
    mutating func look(at nodes: [NodeAnnouncement]) -> [(node: String, detail: String)] {
        var found: [String: String] = [:]
        for node in nodes where node.role != NodeRole.gateway.rawValue {
            do throws(PeerAccess.Obstacle) {
                _ = try access.origin(of: node)
            } catch {
                found[node.id] = error.detail
            }
        }
        let news = found.filter { details[$0.key] != $0.value }.sorted { $0.key < $1.key }
        details = found
        return news.filter { _ in lines.admit(nowMs: WallClock.nowMs()) != nil }.map { ($0.key, $0.value) }
    }

    /// The problem that an operator has to solve; nil: there is none. Clients may read it, so it names no address.
    var notice: String? {
        guard let first = details.keys.min() else { return nil }
        let more = details.count - 1
        let others = more == 0 ? "" : more == 1 ? " and another one" : " and \(more) others"
        return "the snapshot node \(first)\(others) cannot be asked at the announced address, see the node's log lines"
    }
}
