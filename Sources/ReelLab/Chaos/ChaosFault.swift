import ReelClient

/// Something that is done to a part of a cluster, and undone after a while.
public struct ChaosFault: Sendable, Equatable {
    /// What is done.
    public enum Kind: String, Sendable, CaseIterable {
        /// SIGKILL, and a new start.
        case kill
        /// SIGSTOP, and SIGCONT.
        case hang
        /// SIGTERM, and a new start.
        case stop
        /// Between clients and a gateway, or between all nodes and a broker: see `FaultProxy.Fault`.
        case delay, blackhole, reset, halfOpen, swallow

        /// What the table calls it.
        var title: String {
            switch self {
            case .kill: "killed"
            case .hang: "hung"
            case .stop: "stopped"
            case .delay: "network: delayed"
            case .blackhole: "network: black hole"
            case .reset: "network: reset"
            case .halfOpen: "network: half open"
            case .swallow: "network: answers lost"
            }
        }

        /// Whether it is done to the way to a node and not to the node.
        var isOfNetwork: Bool {
            switch self {
            case .kill, .hang, .stop: false
            case .delay, .blackhole, .reset, .halfOpen, .swallow: true
            }
        }

        /// How long it lasts, in milliseconds.
        fileprivate var lastsMs: ClosedRange<Int64> {
            switch self {
            case .kill, .stop: 300...5_000
            case .hang: 1_000...15_000
            case .delay: 3_000...15_000
            case .blackhole, .halfOpen: 2_000...25_000
            case .reset, .swallow: 500...1_000
            }
        }
    }

    /// What it is done to.
    public enum Target: Sendable, Hashable, CustomStringConvertible {
        /// The gateway of this index, or the way of clients to it.
        case gateway(Int)
        /// The snapshot node of this index.
        case snapshot(Int)
        /// A broker, numbered from 1, or the way of nodes to it.
        case broker(Int)

        /// What it is one of: `gateway`.
        var group: String {
            switch self {
            case .gateway: "gateway"
            case .snapshot: "snapshot"
            case .broker: "broker"
            }
        }

        /// `gateway-b`, `snapshot-a`, `broker-2`.
        public var description: String {
            func letter(_ index: Int) -> Character { Array("abcdefgh")[index % 8] }
            return switch self {
            case .gateway(let index), .snapshot(let index): "\(group)-\(letter(index))"
            case .broker(let number): "\(group)-\(number)"
            }
        }
    }

    /// What is done.
    public var kind: Kind
    /// To whom.
    public var target: Target
    /// When, in milliseconds from the start.
    public var atMs: Int64
    /// How long it lasts.
    public var lastsMs: Int64
    /// By how much a delayed way is late.
    public var delayMs: Int

    /// It is done to the process of a broker, and not to the way to it.
    var hitsBroker: Bool { target.group == "broker" && !kind.isOfNetwork }

    /// A schedule that follows from the seed: faults by their beginning, all over when `forMs` have passed. Several may
    /// last at a time, but only one of a target, and of all brokers' processes one.
    public static func schedule(
        seed: UInt64,
        forMs: Int64,
        gateways: Int,
        snapshots: Int,
        brokers: Int
    ) -> [ChaosFault] {
        var random = SeededGenerator(seed: seed)
        var candidates: [(Kind, Target)] = []
        for index in 0..<gateways {
            candidates += Kind.allCases.map { ($0, .gateway(index)) }
        }
        for index in 0..<snapshots { candidates += [(.kill, .snapshot(index)), (.hang, .snapshot(index))] }
        for number in 0..<brokers {
            candidates += Kind.allCases.filter { $0 != .stop }.map { ($0, .broker(number + 1)) }
        }
        guard !candidates.isEmpty else { return [] }
        var faults: [ChaosFault] = []
        var freeMs: [Target: Int64] = [:]
        var brokersFreeMs: Int64 = 0
        var atMs: Int64 = 1_000
        while atMs < forMs {
            let (kind, target) = candidates[Int.random(in: 0..<candidates.count, using: &random)]
            let fault = ChaosFault(
                kind: kind,
                target: target,
                atMs: atMs,
                lastsMs: Int64.random(in: kind.lastsMs, using: &random),
                delayMs: Int.random(in: 20...400, using: &random)
            )
            let endMs = atMs + fault.lastsMs
            if endMs <= forMs, freeMs[target] ?? 0 <= atMs, !fault.hitsBroker || brokersFreeMs <= atMs {
                faults.append(fault)
                freeMs[target] = endMs + 500
                // A broker has to be there and in sync again before the next one goes.
                if fault.hitsBroker { brokersFreeMs = endMs + 20_000 }
            }
            atMs += Int64.random(in: 300...5_000, using: &random)
        }
        return faults
    }
}
