import ReelCore
import ReelLog

/// The losses of the log that other nodes claim, and the log's answers. It only decides; `LossWatch` acts.
///
/// A snapshot node announces a claim if the log has another record, or none, at a seq where the node has folded one.
/// Publishing into such a log would acknowledge events that no node applies. But an announcement can be wrong. A claim
/// counts only if all of this is true:
/// - The node has repeated it.
/// - The log was asked for the record and does not have it.
/// - The node itself says the same when it is asked (`LossWatch`).
struct LossClaims {
    /// The claim of a node.
    struct Claim: Hashable {
        var node: String
        var partition: Int
        var seq: Seq
        /// The hash of the record that the node has processed at this seq.
        var hash: UInt64
    }

    /// The answer of the log to a claim.
    enum Verdict: Equatable {
        /// The log does not have the record: it ends before it, or has another one.
        case confirmed(ReelError)
        /// The log has the record, or the claim cannot be true.
        case refuted
        /// The log cannot tell.
        case unknown
    }

    private struct State {
        /// When the node first announced the claim, by the node's clock. Only a change of this value counts.
        var announcedAtMs: Int64
        var isRepeated = false
        var verdict = Verdict.unknown
        /// When the log was asked last; nil: never.
        var askedMs: Int64?
    }

    /// The time in milliseconds after which a claim is checked again, if the node still repeats it.
    static let checkAgainMs: Int64 = 10_000
    /// The maximum number of claims; further ones are ignored.
    static let claimsMax = 256
    /// The maximum distance of a lost record from the log's end. A claim beyond it cannot be true.
    static let lossMax: Seq = 1 << 32

    private var claims: [Claim: State] = [:]

    /// Takes the claims from the latest announcements of the nodes, without this node's own. A node that hangs or was
    /// killed keeps its claim until its last announcement is forgotten. A node that leaves withdraws it.
    mutating func heard(_ nodes: [NodeAnnouncement], of epoch: Epoch, partitions: Int) {
        var heard: [Claim: State] = [:]
        for node in nodes where node.epoch == epoch && !node.hasLeft {
            var seen: Set<Int> = []
            for stop in node.stops {
                guard let lost = stop.lost, heard.count < Self.claimsMax, (0..<partitions).contains(stop.partition),
                    seen.insert(stop.partition).inserted
                else { continue }
                let claim = Claim(node: node.id, partition: stop.partition, seq: lost.seq, hash: lost.hash)
                var state = claims[claim] ?? State(announcedAtMs: node.atMs)
                if state.announcedAtMs != node.atMs { state.isRepeated = true }
                heard[claim] = state
            }
        }
        claims = heard
    }

    /// Returns the claim that the log has to be asked about now; nil: there is none.
    mutating func next(nowMs: Int64) -> Claim? {
        let due = claims.filter { _, state in
            state.isRepeated && state.askedMs.map { nowMs - $0 >= Self.checkAgainMs } ?? true
        }
        guard let next = due.min(by: { ($0.value.askedMs ?? .min) < ($1.value.askedMs ?? .min) })?.key else {
            return nil
        }
        claims[next]?.askedMs = nowMs
        return next
    }

    /// Records the log's answer to a claim.
    mutating func answered(_ claim: Claim, _ verdict: Verdict) {
        // While the log is unavailable, its earlier answers stay valid.
        if verdict != .unknown { claims[claim]?.verdict = verdict }
    }

    /// Returns the loss of a partition; nil: none is known.
    func loss(of partition: Int) -> ReelError? {
        claims.filter { $0.key.partition == partition }.sorted { $0.key.node < $1.key.node }.lazy.compactMap {
            _,
            state in
            if case .confirmed(let error) = state.verdict { error } else { nil }
        }.first
    }
}

extension LossClaims.Claim {
    /// Asks the log for the record. Blocks.
    func check(in log: any EventLog) -> LossClaims.Verdict {
        do throws(LogError) {
            let bounds = try log.bounds(partition)
            guard (0...largestInteger).contains(seq), seq - max(0, bounds.last) <= LossClaims.lossMax else {
                return .refuted
            }
            guard seq <= bounds.last else {
                return .confirmed(
                    ReelError(
                        .aheadOfLog,
                        "the node \(node) has processed partition \(partition) to seq \(seq), the log ends at"
                            + " \(bounds.last): it has lost what it had"
                    )
                )
            }
            guard seq >= bounds.first else { return .unknown }
            let batch = try log.read(partition, from: seq, to: seq, bytes: 1)
            guard let entry = batch.entry(at: seq) else { return .unknown }
            guard batch.witness(of: entry).hash != hash else { return .refuted }
            return .confirmed(
                ReelError(
                    .diverged,
                    "the node \(node) has processed another record at seq \(seq) of partition \(partition) than the"
                        + " log has there: it was rolled back and written again"
                )
            )
        } catch {
            return .unknown
        }
    }
}
