import ReelBase
import ReelClient

/// A fault of a part of a cluster, which is undone after a while.
public struct ChaosFault: Sendable, Equatable {
    /// The kind of fault.
    public enum Kind: String, Sendable, CaseIterable {
        /// SIGKILL, and a restart.
        case kill
        /// SIGSTOP, and SIGCONT.
        case hang
        /// SIGTERM, and a restart.
        case stop
        /// A fault of the network between clients and a gateway, or between all nodes and a broker. See
        /// `FaultProxy.Fault`.
        case delay, blackhole, reset, halfOpen, swallow

        /// The name in the table and in the histories.
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

        /// True for a fault of the network to a node, false for one of its process.
        var isOfNetwork: Bool {
            switch self {
            case .kill, .hang, .stop: false
            case .delay, .blackhole, .reset, .halfOpen, .swallow: true
            }
        }

        /// The duration in milliseconds.
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

    /// The part of the cluster that has the fault.
    public enum Target: Sendable, Hashable, CustomStringConvertible {
        /// The gateway of this index, or the network between clients and it.
        case gateway(Int)
        /// The snapshot node of this index.
        case snapshot(Int)
        /// A broker, numbered from 1, or the network between nodes and it.
        case broker(Int)

        /// The kind of part, such as `gateway`.
        var group: String {
            switch self {
            case .gateway: "gateway"
            case .snapshot: "snapshot"
            case .broker: "broker"
            }
        }

        /// The name, such as `gateway-b`, `snapshot-a` or `broker-2`.
        public var description: String {
            func letter(_ index: Int) -> Character { Array("abcdefgh")[index % 8] }
            return switch self {
            case .gateway(let index), .snapshot(let index): "\(group)-\(letter(index))"
            case .broker(let number): "\(group)-\(number)"
            }
        }
    }

    /// The kind of fault.
    public var kind: Kind
    /// The part that has the fault.
    public var target: Target
    /// The time of the fault, in milliseconds from the start.
    public var atMs: Int64
    /// The duration in milliseconds.
    public var lastsMs: Int64
    /// The delay of a delayed network, in milliseconds.
    public var delayMs: Int

    /// True if the fault is of a broker's process, and not of the network to it.
    var hitsBroker: Bool { target.group == "broker" && !kind.isOfNetwork }

    /// Returns a schedule of faults that follows from the seed, sorted by their beginning.
    ///
    /// Several faults may overlap, but only one per target, and only one of all brokers' processes.
    /// - Parameters:
    ///   - seed: the seed of all random choices.
    ///   - forMs: the time after which all faults have ended, in milliseconds.
    ///   - gateways: the number of gateways.
    ///   - snapshots: the number of snapshot nodes.
    ///   - brokers: the number of brokers.
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
                // A broker must be running and in sync again before the next one fails.
                if fault.hitsBroker { brokersFreeMs = endMs + 20_000 }
            }
            atMs += Int64.random(in: 300...5_000, using: &random)
        }
        return faults
    }
}
