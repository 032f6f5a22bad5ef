public import ReelCore
public import ReelLog

/// The health of one role of a node in one partition.
public struct PartitionHealth: Equatable, Sendable {
    /// The reason why a role does not process a partition.
    public struct Stop: Equatable, Sendable {
        /// The code of the reason.
        public var code: ErrorCode
        /// The finding and the remedy.
        public var reason: String
        /// The last processed record, if the log no longer has it or has another record at its seq.
        public var lost: Witness?

        /// The codes that stop a partition.
        public static let codes: [ErrorCode] = [
            .damaged, .diverged, .aheadOfLog, .truncated, .internal, .logUnavailable, .forbidden, .nodeBehind,
            .epochChanged,
        ]

        /// A reason with a code and a sentence.
        public init(_ code: ErrorCode, _ reason: String, lost: Witness? = nil) {
            self.code = code
            self.reason = reason
            self.lost = lost
        }

        /// True if the role cannot continue without an operator. The other stops end once their cause is removed, and
        /// no reader is refused. Examples are an outage of the log, a full disk, a missing right and the end of an
        /// epoch.
        public var isLasting: Bool {
            switch code {
            case .damaged, .diverged, .aheadOfLog, .truncated, .internal: true
            default: false
            }
        }

        /// True if the log has lost records that this role has processed.
        public var isLoss: Bool { code.isLoss }
    }

    /// The last seq read (gateway) or folded (snapshot node); −1: none.
    public var seq: Seq
    /// The last seq of the partition when the role started; −1: none. Below it the role is not ready.
    public var goal: Seq
    /// False until a snapshot node has compared its file with the log.
    public var isOpen: Bool
    /// The seq at which reading continued after records that were trimmed unread; nil: no record was.
    public var skippedTo: Seq?
    /// The reason why the partition is not processed; nil: it is processed.
    public var stop: Stop?

    /// The health of a partition.
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
    /// True if the code means that the log has lost records that a node has processed.
    public var isLoss: Bool { self == .aheadOfLog || self == .diverged }
}
