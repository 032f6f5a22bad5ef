import ReelCore
import ReelLog

/// What nodes and log said when they were asked how they are.
struct ClusterReport {
    /// One node, or what else answers at its address.
    struct Node {
        var address: NodeAddress
        /// Who asks named it.
        var isNamed = false
        /// What it announced last; nil: nobody announces this address.
        var announced: ClusterRow?
        /// Where it stood, looked at twice, `pauseMs` apart; empty: it does not answer.
        var looks: [NodeStanding] = []
        /// When the last look was, by this machine's clock, milliseconds since 1970; nil: it does not answer.
        var askedMs: Int64?
        /// Why it does not answer.
        var failure = ""
        /// What it refuses whoever asks with; nil: it does not answer at all.
        var refusal: ErrorCode?
        /// Why it did not say who the others are; nil: it did, or was not asked.
        var secrecy: NodeProbe.NoSignOfLife?
        /// Where its operator asks; nil: where clients do.
        var admin: NodeAddress?
        var metrics = MetricsPage()
        /// Why it does not show its metrics; nil: it does.
        var metricsRefusal: NodeProbe.NoSignOfLife?
        /// The streams that have many of their sites, and how many; nil: by its metrics there is none.
        var crowd: Result<[String: Int], NodeProbe.NoSignOfLife>?

        var answers: Bool { !looks.isEmpty }
        /// It announces that it listens everywhere, which says nobody where it is.
        var isUnspecified: Bool { announced != nil && ["0.0.0.0", "::"].contains(address.host) }
        /// As it announced it, else as its metrics betray it; empty: nothing is known.
        var role: String {
            if let announced { return announced.role }
            let isBoth = metrics.hasFamily("reel_gateway_") && metrics.hasFamily("reel_snapshot_")
            if isBoth { return "serve" }
            return metrics.hasFamily("reel_gateway_")
                ? "gateway" : metrics.hasFamily("reel_snapshot_") ? "snapshot" : ""
        }
        /// It takes clients.
        var isGateway: Bool { ["gateway", "serve"].contains(role) }
        /// It answers for the folded state.
        var isSnapshot: Bool { ["snapshot", "serve"].contains(role) }
        /// `gateway http://127.0.0.1:7350`.
        var name: String { role.isEmpty ? "\(address)" : "\(role) \(address)" }
        /// Its last word: `last heard of 3.0 s ago`, or `it left 3.0 s ago`; nil: that is not known.
        var lastWord: String? {
            guard let announced, announced.hasLeft || announced.ageMs != nil else { return nil }
            return announced.hasLeft ? "it \(announced.seen)" : "last heard of \(announced.seen)"
        }
    }

    /// The log, asked without any node.
    struct Log {
        var epoch: Epoch
        var bounds: [LogBounds]
        /// What there is to say of its storage; nil: nothing.
        var notice: String?
    }

    var nodes: [Node] = []
    /// Those that left in good order and that nobody has named, which are not asked: `gateway http://a:1 (left 3.0 s
    /// ago)`.
    var left: [String] = []
    /// Addresses that were announced and cannot be asked.
    var oddAddresses: [String] = []
    /// Nil: it was not asked; a failure says why it cannot be reached.
    var log: Result<Log, CommandError>?
    /// What is not as it must be in the store of the log that was asked, and what to do.
    var complaints: [String] = []
    /// Brokers keep the log that was asked; else it is a file.
    var hasBrokers = false

    /// Between the two looks at each node.
    static let pauseMs: Int64 = 1_000

    /// Nobody said who the nodes are: one that is not seen here may well be there.
    var isPartial: Bool { nodes.contains { $0.secrecy != nil } && nodes.allSatisfy { $0.announced == nil } }

    /// The nodes that are asked for the state of a stream: the snapshot nodes. Where nobody said who those are, a node
    /// whose role is unknown is asked too: it has the state, or passes the question on.
    var askedForStates: [Node] {
        let snapshots = living.filter(\.isSnapshot)
        return snapshots.isEmpty && isPartial ? living.filter(\.role.isEmpty) : snapshots
    }

    /// The nodes that answer: those that announced themselves; where none did, such as while the log is away for long,
    /// whoever answers.
    var living: [Node] {
        let answering = nodes.filter(\.answers)
        let announced = answering.filter { $0.announced != nil }
        return announced.isEmpty ? answering : announced
    }
}
