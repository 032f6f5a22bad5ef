public import ReelCore
public import ReelLog

/// How one role of a node stands in one partition.
public struct PartitionHealth: Equatable, Sendable {
    /// Why a role does not process a partition.
    public struct Stop: Equatable, Sendable {
        /// The code of the reason.
        public var code: ErrorCode
        /// What was found, and what to do.
        public var reason: String
        /// The last record that was processed, where the log has it no more or has another one.
        public var lost: Witness?

        /// The codes that stop a partition.
        public static let codes: [ErrorCode] = [
            .damaged, .diverged, .aheadOfLog, .truncated, .internal, .logUnavailable, .forbidden, .nodeBehind,
            .epochChanged,
        ]

        /// A reason.
        public init(_ code: ErrorCode, _ reason: String, lost: Witness? = nil) {
            self.code = code
            self.reason = reason
            self.lost = lost
        }

        /// True if the role cannot continue by itself, however long one waits. An outage of the log, a full disk, a
        /// missing right and the end of an epoch are over once somebody has seen to them, and stop no reader.
        public var isLasting: Bool {
            switch code {
            case .damaged, .diverged, .aheadOfLog, .truncated, .internal: true
            default: false
            }
        }

        /// True if the log has lost something that this role has processed before.
        public var isLoss: Bool { code.isLoss }
    }

    /// The last seq read (gateway) or folded (snapshot node); −1: none.
    public var seq: Seq
    /// The last seq that there was when the role began with the partition; −1: none. Below it the role is not ready.
    public var goal: Seq
    /// False until a snapshot node has compared its file with the log.
    public var isOpen: Bool
    /// The seq at which reading continued after records that were trimmed unread; nil: none were.
    public var skippedTo: Seq?
    /// Why the partition is not processed; nil: it is.
    public var stop: Stop?

    /// A partition that is processed.
    public init(seq: Seq, goal: Seq, isOpen: Bool = true, skippedTo: Seq? = nil, stop: Stop? = nil) {
        self.seq = seq
        self.goal = goal
        self.isOpen = isOpen
        self.skippedTo = skippedTo
        self.stop = stop
    }

    /// True if the role can serve the partition.
    public var isReady: Bool { isOpen && seq >= goal && stop?.isLasting != true }
}

extension ErrorCode {
    /// True if the code says that the log has lost something that a node has processed before.
    public var isLoss: Bool { self == .aheadOfLog || self == .diverged }
}
