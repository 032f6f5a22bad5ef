import ReelCore

/// A client needs a seq that this node has not read. Does the log have it? Then the node will have it soon, or is
/// behind. If the log has not, it is asked once more after a while: then the client knows more than the log.
struct SeqWaiter {
    /// What to do.
    enum Step: Equatable {
        /// Ask the log where it ends, and tell `logEnds`.
        case ask
        /// Nothing until the next tick.
        case wait
        /// The node has read the seq.
        case reached
        case refuse(ReelError)
    }

    private enum Phase {
        case asking(isLast: Bool)
        case nodeBehind(untilMs: Int64)
        case logBehind(untilMs: Int64)
    }

    let partition: Int
    let seq: Seq
    private var phase = Phase.asking(isLast: false)
    private let behindMs: Int64
    private let aheadMs: Int64

    /// The first step is to ask the log.
    init(partition: Int, seq: Seq, behindMs: Int64, aheadMs: Int64) {
        self.partition = partition
        self.seq = seq
        self.behindMs = behindMs
        self.aheadMs = aheadMs
    }

    /// The log's end was asked for: its last seq, or nil where it does not answer.
    mutating func logEnds(at last: Seq?, nowMs: Int64) -> Step {
        guard case .asking(let isLast) = phase else { return .wait }
        guard let last else {
            return .refuse(ReelError(.logUnavailable, "the log's end could not be asked for", retryMs: 1_000))
        }
        if seq <= last {
            phase = .nodeBehind(untilMs: nowMs + behindMs)
        } else if isLast {
            return .refuse(
                ReelError(
                    .aheadOfLog,
                    "found the position \(seq), but the log ends at \(last): nobody has read that here, or the log has "
                        + "lost something"
                )
            )
        } else {
            phase = .logBehind(untilMs: nowMs + aheadMs)
        }
        return .wait
    }

    /// When `tick` is to be asked; the past: while the log is asked.
    var untilMs: Int64 {
        switch phase {
        case .asking: .min
        case .nodeBehind(let untilMs), .logBehind(let untilMs): untilMs
        }
    }

    /// Asked once `untilMs` has come, with the last seq that the node has read.
    mutating func tick(head: Seq, nowMs: Int64) -> Step {
        if seq <= head { return .reached }
        switch phase {
        case .nodeBehind(let untilMs) where nowMs >= untilMs:
            return .refuse(
                ReelError(.nodeBehind, "this node has read to seq \(head), the position is \(seq)", retryMs: 1_000)
            )
        case .logBehind(let untilMs) where nowMs >= untilMs:
            phase = .asking(isLast: true)
            return .ask
        default: return .wait
        }
    }
}
