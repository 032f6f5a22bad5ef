/// How a node leaves: the first request to end makes it unready and sends its clients away, each at a moment of its
/// own; it has ended once the last one is gone or the limit has passed. A second request ends it at once. A node that
/// is to begin anew leaves in the same way, and of those who ask it to end meanwhile the first one is the first.
struct Drain: Sendable {
    /// Why a node that leaves ends now.
    enum Reason: String, Sendable {
        /// No client is left.
        case allHaveLeft = "all have left"
        /// The limit has passed.
        case limit
        /// It was told to end a second time.
        case toldTwice = "told twice"
    }

    /// What the node has to do now.
    enum Action: Equatable, Sendable {
        /// Nothing yet.
        case wait
        /// Stop listening, say unready, and tell each client to go within so many milliseconds.
        case askToLeave(withinMs: Int64)
        /// Close what is left and exit.
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

    /// Clients leave within `spreadMs`; what is left after `limitMs` is cut.
    init(spreadMs: Int64, limitMs: Int64) {
        self.spreadMs = min(spreadMs, limitMs)
        self.limitMs = limitMs
    }

    /// A request to end.
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

    /// The node is to begin anew: clients leave within `spreadMs`. Nothing if it leaves already.
    mutating func restartForEpoch(nowMs: Int64, spreadMs: Int64) -> Action {
        guard case .serving = phase else { return .wait }
        phase = .leaving(untilMs: nowMs + limitMs, isRequested: false)
        return .askToLeave(withinMs: min(spreadMs, limitMs))
    }

    /// Asked again and again while the node leaves.
    mutating func tick(nowMs: Int64, connections: Int) -> Action {
        guard case .leaving(let untilMs, _) = phase else { return .wait }
        guard connections == 0 || nowMs >= untilMs else { return .wait }
        phase = .ended
        return .end(connections == 0 ? .allHaveLeft : .limit)
    }
}
