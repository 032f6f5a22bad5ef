/// Which node to try next, and when. A pure machine: time comes in as milliseconds of any steady clock, chance from a
/// seed.
///
/// One round over all nodes is quick, because another node most likely lives. Only when a whole round has failed do the
/// pauses double, each client at its own moment, so that a thousand clients do not come back as one.
package struct Failover: Sendable {
    /// Where to connect, and at what time.
    package struct Attempt: Equatable, Sendable {
        package var node: String
        package var atMs: Int64
    }

    /// An attempt of the first round that has brought no `welcome` after so long has failed.
    static let attemptMs: Int64 = 3_000
    /// What the doubling of that with each round ends at: a little more than a node waits for a client.
    static let attemptMaxMs: Int64 = 12_000
    /// Within the first round: the longest pause before the next node is tried.
    static let quickMs: Int64 = 20
    /// The pause after the first round; it doubles with every further one.
    static let pauseMs: Int64 = 100
    /// The longest pause.
    static let pauseMaxMs: Int64 = 10_000
    /// A connection that lived so long was a good one: the count of failures starts anew.
    static let steadyMs: Int64 = 5_000
    /// The longest time that a client stays away from a node that tells it when to come again.
    static let holdMsMax: Int64 = 60_000
    /// The longest address in bytes of a node that was only heard of.
    static let nodeBytesMax = 512
    /// How many nodes are remembered that were only heard of.
    static let learnedMax = 32

    private let configured: [String]
    private var learned: [String] = []
    /// Nodes that did not answer since the last welcome.
    private var silent: Set<String> = []
    /// The present node took the connection.
    private var hasAnswered = false
    private var random: SeededGenerator
    private var cursor: Int
    private var failures = 0
    private var welcomedMs: Int64?
    /// The nodes that said when this client may come again, and that time.
    private var heldUntilMs: [String: Int64] = [:]
    /// The node that asked to be left: not the next one, where there is another.
    private var left: String?

    /// The node of the present attempt or connection.
    package private(set) var current: String?

    /// Starts at a node chosen by chance, so that many clients with one list spread over it; or at the first one.
    package init(nodes: [String], seed: UInt64, startsAtFirst: Bool = false) {
        var unique: [String] = []
        for node in nodes where !unique.contains(node) { unique.append(node) }
        configured = unique
        random = SeededGenerator(seed: seed)
        cursor = unique.isEmpty || startsAtFirst ? 0 : Int(random.next() % UInt64(unique.count))
    }

    /// All nodes known: those configured, then those heard of.
    package var nodes: [String] { configured + learned }

    /// In what order they are tried. Behind each that was only heard of comes a configured one: names that lead nowhere
    /// from here must not keep a client from its own node.
    private var order: [String] {
        guard !configured.isEmpty else { return learned }
        return (0..<max(configured.count, learned.count)).flatMap { index in
            [configured[index % configured.count]] + learned.dropFirst(index).prefix(1)
        }
    }

    /// The next attempt; nil if no node is known.
    package mutating func next(nowMs: Int64) -> Attempt? {
        let order = order
        guard !order.isEmpty else { return nil }
        if order.count > 1, order[cursor % order.count] == left { cursor += 1 }
        left = nil
        // Another node may let the client in now.
        for _ in 1..<order.count where (heldUntilMs[order[cursor % order.count]] ?? 0) > nowMs { cursor += 1 }
        let node = order[cursor % order.count]
        cursor = (cursor + 1) % order.count
        current = node
        hasAnswered = false
        return Attempt(node: node, atMs: max(nowMs + pause(), heldUntilMs[node] ?? 0))
    }

    /// How long the present attempt may take to bring a `welcome`. It doubles once all nodes have failed: a slow
    /// network must not keep a client out for ever.
    package var attemptMs: Int64 { min(Self.attemptMs << Int64(min(round, 20)), Self.attemptMaxMs) }

    /// The node took the connection. Whatever comes of it (its token is not taken, its log is not the last one), it is
    /// there.
    package mutating func answered() {
        hasAnswered = true
        if let current { silent.remove(current) }
    }

    /// The node said welcome. So the network is there, and nodes that were only heard of and did not answer are gone.
    package mutating func welcomed(nowMs: Int64) {
        welcomedMs = nowMs
        answered()
        learned.removeAll { silent.contains($0) }
        silent = []
        goOnBehindCurrent()
    }

    private mutating func goOnBehindCurrent() {
        cursor = (order.firstIndex { $0 == current } ?? 0) + 1
    }

    /// The attempt failed, or the connection has ended. `retryMs`: the node has said that this client may come again
    /// after this time.
    package mutating func lost(nowMs: Int64, retryMs: Int64? = nil) {
        heldUntilMs = heldUntilMs.filter { $0.value > nowMs }
        if let retryMs, let current { heldUntilMs[current] = nowMs + min(max(0, retryMs), Self.holdMsMax) }
        if !hasAnswered, let current { silent.insert(current) }
        if let welcomedMs, nowMs - welcomedMs >= Self.steadyMs { failures = 0 }
        welcomedMs = nil
        current = nil
        failures += 1
    }

    /// What was wrong with the nodes is no more: the next attempt follows at once.
    package mutating func hurry() { failures = 0 }

    /// The node asks to go elsewhere within `afterMs`: the moment at which this client goes.
    package mutating func leaves(afterMs: Int64, nodes: [String], nowMs: Int64) -> Int64 {
        learn(nodes)
        left = current
        let span = min(max(afterMs, 0), 60_000)
        return nowMs + Int64.random(in: 0...span, using: &random)
    }

    /// The other nodes, as one of them names them; none: it does not know. Who has only `https` nodes of its own goes
    /// to no other kind: what it has to say, its token too, is not for everybody's ears.
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
        if current != nil { goOnBehindCurrent() }
    }

    /// A node to ask something by HTTP: another one than the connected, where there is another. Successive calls go
    /// round.
    mutating func peer() -> String? {
        let nodes = nodes
        let others = nodes.filter { $0 != current }
        guard let first = others.first ?? nodes.first else { return nil }
        guard others.count > 1 else { return first }
        return others[Int(random.next() % UInt64(others.count))]
    }

    /// How often all nodes have failed, since a connection was lost or there was none.
    private var round: Int { max(0, failures - 1) / max(1, order.count) }

    private mutating func pause() -> Int64 {
        guard failures > 0 else { return 0 }
        guard round > 0 else { return Int64.random(in: 0...Self.quickMs, using: &random) }
        let longest = min(Self.pauseMs << Int64(min(round - 1, 20)), Self.pauseMaxMs)
        return Int64.random(in: longest / 2...longest, using: &random)
    }
}
