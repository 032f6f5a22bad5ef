public import ReelCore

/// What a node says of itself to the others: how the cluster finds itself, through the log.
public struct NodeAnnouncement: Equatable, Sendable {
    public struct Position: Equatable, Sendable {
        public var partition: Int
        /// The last seq read (gateway) or folded (snapshot node).
        public var seq: Seq
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
    public var build: String
    public var positions: [Position]
    /// When it was announced, milliseconds since 1970, of the announcing node's clock.
    public var atMs: Int64

    public init(
        id: String, role: String, url: String, advertised: String?, build: String, positions: [Position], atMs: Int64
    ) {
        self.id = id
        self.role = role
        self.url = url
        self.advertised = advertised
        self.build = build
        self.positions = positions
        self.atMs = atMs
    }
}
