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

    /// Unique per process.
    public var id: String
    /// `gateway`, `snapshot` or `serve`.
    public var role: String
    /// Where other nodes reach it.
    public var url: String
    /// What clients are told (`--advertise`); nil: nothing.
    public var advertised: String?
    /// The version of the program.
    public var build: String
    /// One for each partition that the node reads.
    public var positions: [Position]
    /// When it was announced, milliseconds since 1970, of the announcing node's clock.
    public var atMs: Int64

    /// What a node says of itself.
    public init(
        id: String,
        role: String,
        url: String,
        advertised: String?,
        build: String,
        positions: [Position],
        atMs: Int64
    ) {
        self.id = id
        self.role = role
        self.url = url
        self.advertised = advertised
        self.build = build
        self.positions = positions
        self.atMs = atMs
    }

    /// What was announced before this moment, ten minutes ago, is forgotten.
    package static func oldestMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000 - 600_000
    }
}
