import ReelCore

/// The state machine of a client's wait for a seq that this node has not read.
///
/// The log is asked if it has the seq. If it has, the node will read it soon, or is behind. If it has not, the log is
/// asked once more after a while. If it then still does not have the seq, the client knows more than the log.
struct SeqWaiter {
    /// The next step of the wait.
    enum Step: Equatable {
        /// Ask the log for its end, and pass the answer to `logEnds`.
        case ask
        /// Do nothing until the next tick.
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

    /// Creates a wait. Its first step is to ask the log.
    ///
    /// - Parameters:
    ///   - partition: The partition of the seq.
    ///   - seq: The seq that the client needs.
    ///   - behindMs: The maximum wait in milliseconds for a seq that the log has.
    ///   - aheadMs: The time in milliseconds after which the log is asked again for a seq that it does not have.
    init(partition: Int, seq: Seq, behindMs: Int64, aheadMs: Int64) {
        self.partition = partition
        self.seq = seq
        self.behindMs = behindMs
        self.aheadMs = aheadMs
    }

    /// Called with the log's last seq, or nil if the log does not answer. Returns the next step.
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

    /// When `tick` has to be called; it is in the past while the log is being asked.
    var untilMs: Int64 {
        switch phase {
        case .asking: .min
        case .nodeBehind(let untilMs), .logBehind(let untilMs): untilMs
        }
    }

    /// Called at `untilMs` or later, with the last seq that the node has read. Returns the next step.
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
