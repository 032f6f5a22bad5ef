internal import Glibc
internal import ReelBase
public import ReelCore

/// A node's announcement to its peers. Nodes find each other by announcements in the log.
public struct NodeAnnouncement: Equatable, Sendable {
    /// The position of a node in a partition.
    public struct Position: Equatable, Sendable {
        /// The partition's number.
        public var partition: Int
        /// The last seq that the node has read (gateway) or folded (snapshot node).
        public var seq: Seq

        /// Creates a position in a partition.
        public init(partition: Int, seq: Seq) {
            self.partition = partition
            self.seq = seq
        }
    }

    /// A partition that a role of the node does not process.
    public struct Stop: Equatable, Sendable {
        /// The role: `gateway` or `snapshot`.
        public var role: String
        /// The partition's number.
        public var partition: Int
        /// The error code of the reason.
        public var code: ErrorCode
        /// The last record that the role has processed, if the log has lost it or holds another record at its seq.
        public var lost: Witness?

        /// Creates the entry of a partition that this role does not process.
        public init(role: String, partition: Int, code: ErrorCode, lost: Witness? = nil) {
            self.role = role
            self.partition = partition
            self.code = code
            self.lost = lost
        }
    }

    /// The node's id, unique per process.
    public var id: String
    /// The node's role: `gateway`, `snapshot` or `serve`.
    public var role: String
    /// The URL at which other nodes reach it.
    public var url: String
    /// The URL of its operator's port for other machines; nil: it has none, or only its own machine can reach it.
    public var adminURL: String?
    /// The URL that clients are given (`--advertise`); nil: none.
    public var advertised: String?
    /// The version of the program.
    public var build: String
    /// The epoch of the log that the node reads; nil: unknown.
    public var epoch: Epoch?
    /// One position for each partition that the node reads as a gateway. In the role `snapshot`: for each that it
    /// folds.
    public var positions: [Position]
    /// The folded position of each partition for a node of the role `serve`; empty: the node has another role.
    public var folded: [Position] = []
    /// True if all roles of the node can serve; nil: unknown, the node is of an older build.
    public var isReady: Bool?
    /// The partitions that the node does not process.
    public var stops: [Stop] = []
    /// When the node made the announcement: milliseconds since 1970 by the node's own clock.
    public var atMs: Int64
    /// When a reader of the log received the announcement: milliseconds since 1970, as precisely as it can tell. The
    /// clock of the announcing node may be wrong. This value is not part of the announcement.
    public var heardMs: Int64 {
        get { heard ?? atMs }
        set { heard = newValue }
    }

    private var heard: Int64?

    /// True if the node is draining or has ended in order, so that its absence is no failure.
    public var hasLeft = false

    /// Creates an announcement.
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

    /// True if both announcements have the same content.
    public static func == (a: NodeAnnouncement, b: NodeAnnouncement) -> Bool {
        (a.id, a.role, a.url, a.advertised, a.build, a.epoch) == (b.id, b.role, b.url, b.advertised, b.build, b.epoch)
            && (a.positions, a.folded, a.isReady, a.stops) == (b.positions, b.folded, b.isReady, b.stops)
            && (a.adminURL, a.atMs, a.hasLeft) == (b.adminURL, b.atMs, b.hasLeft)
    }

    /// Returns the node's position in each partition of the log of `epoch`; empty if it reads another log.
    public func positions(in epoch: Epoch) -> [Position] {
        self.epoch ?? epoch == epoch ? positions : []
    }

    /// Returns the roles of the node, each with its positions in the log of `epoch`. A role has no positions if the
    /// node reads another log.
    public func roles(in epoch: Epoch) -> [(role: String, positions: [Position])] {
        guard role == "serve" else { return [(role, positions(in: epoch))] }
        return [("gateway", positions(in: epoch)), ("snapshot", folded(in: epoch))]
    }

    /// Returns why a role does not process a partition; nil: the role processes it.
    public func stop(of role: String, _ partition: Int) -> ErrorCode? {
        stops.first { $0.role == role && $0.partition == partition }?.code
    }

    /// Returns the node's folded positions in the log of `epoch`; empty if it reads another log or folds nothing.
    public func folded(in epoch: Epoch) -> [Position] {
        guard self.epoch ?? epoch == epoch, role != "gateway" else { return [] }
        return folded.isEmpty ? positions : folded
    }

    /// How many nodes a reader keeps at most: those with the latest announcements.
    package static let nodesMax = 1_000

    /// Returns the time before which announcements are ignored: ten minutes ago, in milliseconds since 1970.
    package static func oldestMs() -> Int64 { WallClock.nowMs() - 600_000 }
}
