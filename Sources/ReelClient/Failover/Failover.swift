import ReelBase

/// The choice of the next node to try, and of the time. A pure state machine: time is given in milliseconds of any
/// monotonic clock, random numbers come from a seed.
///
/// One round over all nodes is quick, because another node most likely works. The pauses double only after a whole
/// round has failed. Each client has a random pause, so that a thousand clients do not reconnect at the same moment.
package struct Failover: Sendable {
    /// The node to connect to, and the time.
    package struct Attempt: Equatable, Sendable {
        package var node: String
        package var atMs: Int64
    }

    /// The timeout for a `welcome` in the first round.
    static let attemptMs: Int64 = 3_000
    /// The maximum of that timeout, which doubles with each round: a little longer than a node waits for a client.
    static let attemptMaxMs: Int64 = 12_000
    /// The longest pause before the next node is tried, within the first round.
    static let quickMs: Int64 = 20
    /// The pause after the first round. It doubles with each further round.
    static let pauseMs: Int64 = 100
    /// The longest pause.
    static let pauseMaxMs: Int64 = 10_000
    /// The age from which a connection counts as good: when it is lost, the count of failures restarts at zero.
    static let steadyMs: Int64 = 5_000
    /// The longest time that a client stays away from a node that has named a time for its return.
    static let holdMsMax: Int64 = 60_000
    /// The longest address in bytes of a node that another node has named.
    static let nodeBytesMax = 512
    /// The maximum number of remembered nodes that other nodes have named.
    static let learnedMax = 32

    private let configured: [String]
    private var learned: [String] = []
    /// The nodes that did not answer since the last `welcome`.
    private var silent: Set<String> = []
    /// True if the present node has accepted the connection.
    private var hasAnswered = false
    private var random: SeededGenerator
    private var cursor: Int
    private var failures = 0
    private var welcomedMs: Int64?
    /// The nodes that have named a time for this client's return, and that time.
    private var heldUntilMs: [String: Int64] = [:]
    /// The node that has asked this client to leave. It is not the next one if there is another.
    private var left: String?

    /// The node of the present attempt or connection.
    package private(set) var current: String?

    /// Creates the machine.
    ///
    /// - Parameters:
    ///   - nodes: the addresses of the configured nodes.
    ///   - seed: the seed of all random choices.
    ///   - startsAtFirst: true to begin with the first node of the list. Otherwise a random one is the first, so that
    ///     many clients with one list spread over the nodes.
    package init(nodes: [String], seed: UInt64, startsAtFirst: Bool = false) {
        var unique: [String] = []
        for node in nodes where !unique.contains(node) { unique.append(node) }
        configured = unique
        random = SeededGenerator(seed: seed)
        cursor = unique.isEmpty || startsAtFirst ? 0 : Int(random.next() % UInt64(unique.count))
    }

    /// All known nodes: the configured ones, then those that nodes have named.
    package var nodes: [String] { configured + learned }

    /// The order in which nodes are tried. After each node that was only named comes a configured one: names that
    /// cannot be reached from here must not keep a client from its own node.
    private var order: [String] {
        guard !configured.isEmpty else { return learned }
        return (0..<max(configured.count, learned.count)).flatMap { index in
            [configured[index % configured.count]] + learned.dropFirst(index).prefix(1)
        }
    }

    /// Returns the next attempt; nil if no node is known.
    package mutating func next(nowMs: Int64) -> Attempt? {
        let order = order
        guard !order.isEmpty else { return nil }
        if order.count > 1, order[cursor % order.count] == left { cursor += 1 }
        left = nil
        // Another node may accept the client now.
        for _ in 1..<order.count where (heldUntilMs[order[cursor % order.count]] ?? 0) > nowMs { cursor += 1 }
        let node = order[cursor % order.count]
        cursor = (cursor + 1) % order.count
        current = node
        hasAnswered = false
        return Attempt(node: node, atMs: max(nowMs + pause(), heldUntilMs[node] ?? 0))
    }

    /// The timeout of the present attempt to bring a `welcome`. It doubles once all nodes have failed, because a slow
    /// network must not exclude a client for ever.
    package var attemptMs: Int64 { min(Self.attemptMs << Int64(min(round, 20)), Self.attemptMaxMs) }

    /// Called when the node has accepted the connection. The node is reachable, even if it then refuses the token or
    /// serves an old log.
    package mutating func answered() {
        hasAnswered = true
        if let current { silent.remove(current) }
    }

    /// Called when the node has sent `welcome`. So the network works, and named nodes that did not answer are gone.
    package mutating func welcomed(nowMs: Int64) {
        welcomedMs = nowMs
        answered()
        learned.removeAll { silent.contains($0) }
        silent = []
        continueAfterCurrent()
    }

    private mutating func continueAfterCurrent() {
        cursor = (order.firstIndex { $0 == current } ?? 0) + 1
    }

    /// Called when the attempt failed or the connection has ended. `retryMs`: the time after which the node allows this
    /// client to return; nil: it named none.
    package mutating func lost(nowMs: Int64, retryMs: Int64? = nil) {
        heldUntilMs = heldUntilMs.filter { $0.value > nowMs }
        if let retryMs, let current { heldUntilMs[current] = nowMs + min(max(0, retryMs), Self.holdMsMax) }
        if !hasAnswered, let current { silent.insert(current) }
        if let welcomedMs, nowMs - welcomedMs >= Self.steadyMs { failures = 0 }
        welcomedMs = nil
        current = nil
        failures += 1
    }

    /// Makes the next attempt follow at once, because the problem with the nodes is solved.
    package mutating func hurry() { failures = 0 }

    /// Called when the node asks this client to leave.
    ///
    /// - Parameters:
    ///   - afterMs: the time within which the client has to leave.
    ///   - nodes: the nodes that the present one names.
    ///   - nowMs: the time by the transport's clock.
    /// - Returns: The moment at which the client leaves.
    package mutating func leaves(afterMs: Int64, nodes: [String], nowMs: Int64) -> Int64 {
        learn(nodes)
        left = current
        let span = min(max(afterMs, 0), 60_000)
        return nowMs + Int64.random(in: 0...span, using: &random)
    }

    /// Takes the list of the other nodes that one of them has sent; an empty list means that it does not know. A client
    /// whose configured nodes are all `https` accepts no other kind: its data and its token must not be sent in clear
    /// text.
    package mutating func learn(_ nodes: [String]) {
        guard !nodes.isEmpty else { return }
        let isSecure = configured.allSatisfy { $0.hasPrefix("https://") }
        let former = learned
        learned = []
        for node in nodes + former.filter({ $0 == current }) where learned.count < Self.learnedMax {
            guard node.utf8.count <= Self.nodeBytesMax, !configured.contains(node), !learned.contains(node) else {
                continue
            }
            if !isSecure || node.hasPrefix("https://") { learned.append(node) }
        }
        if current != nil { continueAfterCurrent() }
    }

    /// Returns a node for a request by HTTP: a random one that is not the connected node, if there is another. Returns
    /// nil if no node is known.
    mutating func peer() -> String? {
        let nodes = nodes
        let others = nodes.filter { $0 != current }
        guard let first = others.first ?? nodes.first else { return nil }
        guard others.count > 1 else { return first }
        return others[Int(random.next() % UInt64(others.count))]
    }

    /// The number of rounds in which all nodes have failed, since a connection was lost or there was none.
    private var round: Int { max(0, failures - 1) / max(1, order.count) }

    private mutating func pause() -> Int64 {
        guard failures > 0 else { return 0 }
        guard round > 0 else { return Int64.random(in: 0...Self.quickMs, using: &random) }
        let longest = min(Self.pauseMs << Int64(min(round - 1, 20)), Self.pauseMaxMs)
        return Int64.random(in: longest / 2...longest, using: &random)
    }
}
