/// The decisions of a graceful shutdown, without clock or I/O. The first request to end makes the node unready and
/// tells the clients to leave, each at a different moment. The drain ends when the last client has left or the time
/// limit has passed. A second request ends it at once.
///
/// A node that restarts for a new epoch leaves in the same way. The first request to end during that counts as the
/// first.
struct Drain: Sendable {
    /// The reason why a node that leaves ends now.
    enum Reason: String, Sendable {
        /// No client is left.
        case allHaveLeft = "all have left"
        /// The time limit has passed.
        case limit
        /// There was a second request to end.
        case toldTwice = "told twice"
    }

    /// The next step of the node.
    enum Action: Equatable, Sendable {
        /// Nothing to do yet.
        case wait
        /// Stop listening, report unready, and tell the clients to leave within `withinMs` milliseconds.
        case askToLeave(withinMs: Int64)
        /// Close the remaining connections and exit.
        case end(Reason)
    }

    private enum Phase {
        case serving
        case leaving(untilMs: Int64, isRequested: Bool)
        case ended
    }

    private var phase = Phase.serving
    private let spreadMs: Int64
    private let limitMs: Int64

    /// A drain in which clients leave within `spreadMs`. After `limitMs` the remaining connections are closed. Both are
    /// in milliseconds.
    init(spreadMs: Int64, limitMs: Int64) {
        self.spreadMs = min(spreadMs, limitMs)
        self.limitMs = limitMs
    }

    /// Handles a request to end.
    mutating func requested(nowMs: Int64) -> Action {
        switch phase {
        case .serving:
            phase = .leaving(untilMs: nowMs + limitMs, isRequested: true)
            return .askToLeave(withinMs: spreadMs)
        case .leaving(let untilMs, isRequested: false):
            phase = .leaving(untilMs: untilMs, isRequested: true)
            return .wait
        case .leaving, .ended:
            phase = .ended
            return .end(.toldTwice)
        }
    }

    /// Starts a drain for a restart with a new epoch: clients leave within `spreadMs` milliseconds. Does nothing if the
    /// node is leaving already.
    mutating func restartForEpoch(nowMs: Int64, spreadMs: Int64) -> Action {
        guard case .serving = phase else { return .wait }
        phase = .leaving(untilMs: nowMs + limitMs, isRequested: false)
        return .askToLeave(withinMs: min(spreadMs, limitMs))
    }

    /// Called at intervals while the node leaves. `connections` is the number of open connections.
    mutating func tick(nowMs: Int64, connections: Int) -> Action {
        guard case .leaving(let untilMs, _) = phase else { return .wait }
        guard connections == 0 || nowMs >= untilMs else { return .wait }
        phase = .ended
        return .end(connections == 0 ? .allHaveLeft : .limit)
    }
}
