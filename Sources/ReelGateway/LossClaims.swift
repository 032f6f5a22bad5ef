import ReelCore
import ReelLog

/// What other nodes say the log has lost, and what the log itself says to that. It decides and does nothing itself.
///
/// A snapshot node that finds another record, or none, where it has folded one announces that. Publishing into such a
/// log would acknowledge events that nobody applies. But an announcement can be wrong, so a claim counts only once the
/// node has repeated it, the log, asked for that record, does not have it, and the node itself says the same where it
/// is asked (`LossWatch`).
struct LossClaims {
    /// What a node says.
    struct Claim: Hashable {
        var node: String
        var partition: Int
        var seq: Seq
        /// The hash of the record that the node has processed at this seq.
        var hash: UInt64
    }

    /// What the log says to a claim.
    enum Verdict: Equatable {
        /// The log does not have the record: it ends before it, or has another one.
        case confirmed(ReelError)
        /// The log has the record, or the claim cannot be true.
        case refuted
        /// The log does not say.
        case unknown
    }

    private struct State {
        /// When the node announced the claim first, by the node's clock: only whether that changes counts.
        var announcedAtMs: Int64
        var isRepeated = false
        var verdict = Verdict.unknown
        /// When the log was asked last; nil: never.
        var askedMs: Int64?
    }

    /// A claim is checked again after this time, as long as the node repeats it.
    static let checkAgainMs: Int64 = 10_000
    /// Claims that are kept; further ones are ignored.
    static let claimsMax = 256
    /// No record can have been lost so far beyond the log's end.
    static let lossMax: Seq = 1 << 32

    private var claims: [Claim: State] = [:]

    /// The latest announcements of the nodes, without this node's own. A node that hangs or was killed keeps its claim
    /// until its last announcement is forgotten; a node that leaves takes it along.
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

    /// The claim that the log is to be asked about now; nil: none.
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

    /// The log was asked about a claim.
    mutating func answered(_ claim: Claim, _ verdict: Verdict) {
        // An outage of the log takes nothing back.
        if verdict != .unknown { claims[claim]?.verdict = verdict }
    }

    /// What the log has lost of a partition; nil: nothing that is known.
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
