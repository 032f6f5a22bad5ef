internal import Glibc
public import ReelCore

/// What a node says of itself to the others: how the cluster finds itself, through the log.
public struct NodeAnnouncement: Equatable, Sendable {
    /// How far a node is in a partition.
    public struct Position: Equatable, Sendable {
        /// The partition.
        public var partition: Int
        /// The last seq read (gateway) or folded (snapshot node).
        public var seq: Seq

        /// A place in a partition.
        public init(partition: Int, seq: Seq) {
            self.partition = partition
            self.seq = seq
        }
    }

    /// A partition that a role of the node does not process.
    public struct Stop: Equatable, Sendable {
        /// The role: `gateway` or `snapshot`.
        public var role: String
        /// The partition.
        public var partition: Int
        /// The code of the reason.
        public var code: ErrorCode
        /// The last record that the role has processed, where the log has it no more or has another one.
        public var lost: Witness?

        /// A partition that this role does not process.
        public init(role: String, partition: Int, code: ErrorCode, lost: Witness? = nil) {
            self.role = role
            self.partition = partition
            self.code = code
            self.lost = lost
        }
    }

    /// Unique per process.
    public var id: String
    /// `gateway`, `snapshot` or `serve`.
    public var role: String
    /// Where other nodes reach it.
    public var url: String
    /// Where others reach its operator's port; nil: it has none, or only its own machine reaches it.
    public var adminURL: String?
    /// What clients are told (`--advertise`); nil: nothing.
    public var advertised: String?
    /// The version of the program.
    public var build: String
    /// The log that the node reads; nil: it does not say.
    public var epoch: Epoch?
    /// One for each partition that the node reads, as a gateway or, in the role `snapshot`, to fold it.
    public var positions: [Position]
    /// How far a node of the role `serve` has folded each partition; empty: the node has another role.
    public var folded: [Position] = []
    /// Whether all its roles can serve; nil: a node of an older build, which does not say it.
    public var isReady: Bool?
    /// The partitions that are not processed.
    public var stops: [Stop] = []
    /// When it was announced, milliseconds since 1970, of the announcing node's clock.
    public var atMs: Int64
    /// When a reader of the log heard it, milliseconds since 1970, as well as the reader can tell: the clock of the
    /// announcing node may be wrong. It is not part of what is announced.
    public var heardMs: Int64 {
        get { heard ?? atMs }
        set { heard = newValue }
    }

    private var heard: Int64?

    /// It leaves in good order, or has left: nobody need look for it.
    public var hasLeft = false

    /// What a node says of itself.
    public init(
        id: String,
        role: String,
        url: String,
        advertised: String?,
        build: String,
        epoch: Epoch? = nil,
        positions: [Position] = [],
        atMs: Int64
    ) {
        self.id = id
        self.role = role
        self.url = url
        self.advertised = advertised
        self.build = build
        self.epoch = epoch
        self.positions = positions
        self.atMs = atMs
    }

    /// Whether two nodes announce the same.
    public static func == (a: NodeAnnouncement, b: NodeAnnouncement) -> Bool {
        (a.id, a.role, a.url, a.advertised, a.build, a.epoch) == (b.id, b.role, b.url, b.advertised, b.build, b.epoch)
            && (a.positions, a.folded, a.isReady, a.stops) == (b.positions, b.folded, b.isReady, b.stops)
            && (a.adminURL, a.atMs, a.hasLeft) == (b.adminURL, b.atMs, b.hasLeft)
    }

    /// How far the node is in the partitions of a log; nothing if it reads another one.
    public func positions(in epoch: Epoch) -> [Position] {
        self.epoch ?? epoch == epoch ? positions : []
    }

    /// The roles of the node, each with how far it is in the partitions of a log; no position if it reads another one.
    public func roles(in epoch: Epoch) -> [(role: String, positions: [Position])] {
        guard role == "serve" else { return [(role, positions(in: epoch))] }
        return [("gateway", positions(in: epoch)), ("snapshot", folded(in: epoch))]
    }

    /// Why a role does not process a partition; nil: it does.
    public func stop(of role: String, _ partition: Int) -> ErrorCode? {
        stops.first { $0.role == role && $0.partition == partition }?.code
    }

    /// How far the node has folded the partitions of a log; nothing if it reads another one, or folds nothing.
    public func folded(in epoch: Epoch) -> [Position] {
        guard self.epoch ?? epoch == epoch, role != "gateway" else { return [] }
        return folded.isEmpty ? positions : folded
    }

    /// A reader keeps so many nodes at most, those that were heard last.
    package static let nodesMax = 1_000

    /// What was announced before this moment, ten minutes ago, is forgotten.
    package static func oldestMs() -> Int64 { nowMs() - 600_000 }

    /// Now, milliseconds since 1970, of this machine's clock.
    package static func nowMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}
