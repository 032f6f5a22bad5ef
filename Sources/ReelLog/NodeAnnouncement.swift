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
    /// The log that the node reads; nil: it does not say.
    public var epoch: Epoch?
    /// One for each partition that the node reads.
    public var positions: [Position]
    /// When it was announced, milliseconds since 1970, of the announcing node's clock.
    public var atMs: Int64
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
        positions: [Position],
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

    /// How far the node is in the partitions of a log; nothing if it reads another one.
    public func positions(in epoch: Epoch) -> [Position] {
        self.epoch ?? epoch == epoch ? positions : []
    }

    /// What was announced before this moment, ten minutes ago, is forgotten.
    package static func oldestMs() -> Int64 { nowMs() - 600_000 }

    /// Now, milliseconds since 1970, of this machine's clock.
    package static func nowMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}
