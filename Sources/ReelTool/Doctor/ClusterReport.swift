import ReelCore
import ReelLog

/// The answers of the nodes and the log to the requests of `reel doctor`.
struct ClusterReport {
    /// One node, or another server at its address.
    struct Node {
        var address: NodeAddress
        /// True if the user named the node with --url.
        var isNamed = false
        /// The last announcement of the node; nil if no node announces this address.
        var announced: ClusterRow?
        /// The answers to two requests for its state, `pauseMs` apart; empty if the node does not answer.
        var looks: [NodeStanding] = []
        /// The time of the last request by this machine's clock, in milliseconds since 1970; nil if the node does not
        /// answer.
        var askedMs: Int64?
        /// The reason why the node does not answer; empty if it does.
        var failure = ""
        /// The error code with which the node refuses requests; nil if it does not answer at all.
        var refusal: ErrorCode?
        /// The reason why the node did not list the other nodes; nil if it did, or was not asked.
        var secrecy: NodeProbe.NoSignOfLife?
        /// The address of the operator's port; nil if it is that for clients.
        var admin: NodeAddress?
        var metrics = MetricsPage()
        /// The reason why the node does not show its metrics; nil if it does.
        var metricsRefusal: NodeProbe.NoSignOfLife?
        /// The streams that are close to the limit of sites, with their numbers of sites; nil if the metrics show none.
        var crowd: Result<[String: Int], NodeProbe.NoSignOfLife>?

        var answers: Bool { !looks.isEmpty }
        /// True if the node announces 0.0.0.0 or `::`, at which other machines cannot reach it.
        var isUnspecified: Bool { announced != nil && ["0.0.0.0", "::"].contains(address.host) }
        /// The role: as announced, else derived from the metrics; empty if it is unknown.
        var role: String {
            if let announced { return announced.role }
            let isBoth = metrics.hasFamily("reel_gateway_") && metrics.hasFamily("reel_snapshot_")
            if isBoth { return "serve" }
            return metrics.hasFamily("reel_gateway_")
                ? "gateway" : metrics.hasFamily("reel_snapshot_") ? "snapshot" : ""
        }
        /// True if the node has the role of a gateway.
        var isGateway: Bool { ["gateway", "serve"].contains(role) }
        /// True if the node has the role of a snapshot node.
        var isSnapshot: Bool { ["snapshot", "serve"].contains(role) }
        /// The role and the address, such as `gateway http://127.0.0.1:7350`.
        var name: String { role.isEmpty ? "\(address)" : "\(role) \(address)" }
        /// The age of the last announcement: `last announced 3.0 s ago`, or `it left 3.0 s ago`; nil if it is unknown.
        var lastWord: String? {
            guard let announced, announced.hasLeft || announced.ageMs != nil else { return nil }
            return announced.hasLeft ? "it \(announced.seen)" : "last announced \(announced.seen)"
        }
    }

    /// The answers of the log itself, without any node.
    struct Log {
        var epoch: Epoch
        var bounds: [LogBounds]
        /// A problem of its storage; nil if there is none.
        var notice: String?
    }

    var nodes: [Node] = []
    /// Nodes that have left after a drain and that the user has not named: `gateway http://a:1 (left 3.0 s ago)`. They
    /// are not asked.
    var left: [String] = []
    /// Announced addresses that are not valid.
    var oddAddresses: [String] = []
    /// The answers of the log, or the reason why it cannot be reached; nil if it was not asked.
    var log: Result<Log, CommandError>?
    /// The problems of the log's store, each with what to do.
    var complaints: [String] = []
    /// True if the log is on Kafka; false if it is a file.
    var hasBrokers = false

    /// The time between the two requests to each node, in milliseconds.
    static let pauseMs: Int64 = 1_000

    /// True if no node has listed the other nodes: there can be nodes that are not in this report.
    var isPartial: Bool { nodes.contains { $0.secrecy != nil } && nodes.allSatisfy { $0.announced == nil } }

    /// The nodes that are asked for the state of a stream: the snapshot nodes. If they are not known, nodes with an
    /// unknown role: such a node has the state, or forwards the request.
    var askedForStates: [Node] {
        let snapshots = living.filter(\.isSnapshot)
        return snapshots.isEmpty && isPartial ? living.filter(\.role.isEmpty) : snapshots
    }

    /// The nodes that answer and have announced themselves. If none has, such as during a long outage of the log: all
    /// nodes that answer.
    var living: [Node] {
        let answering = nodes.filter(\.answers)
        let announced = answering.filter { $0.announced != nil }
        return announced.isEmpty ? answering : announced
    }
}
