public import ReelNode

/// The settings of a gateway. Times are in milliseconds, sizes in bytes, unless a name says otherwise.
public struct GatewaySettings: Sendable {
    /// The settings that every kind of node has.
    public var node = NodeSettings()

    /// Timeout for the `hello` frame of a new connection.
    public var helloMs: Int64 = 10_000
    /// Time between the opening of a connection, or its last answer to a ping, and the next ping. Other frames do not
    /// delay it.
    public var pingMs: Int64 = 25_000
    /// Timeout for the answer to a ping; longer if many bytes may be queued before the ping. Two pings without an
    /// answer end the connection.
    public var pongMs: Int64 = 8_000
    /// Interval at which the gateway checks a client with waiting bytes. Within it the client must take all of them, or
    /// 16 KiB.
    var readMs: Int64 = 60_000
    /// Timeout for a whole message after its start. Each byte that has arrived adds a millisecond.
    var messageMs: Int64 = 30_000
    /// Maximum size of a frame, in both directions.
    public var frameBytes = 1 << 20
    /// Maximum size of an event, in canonical form and stamped.
    public var eventBytes = 256 << 10
    /// Maximum number of events per publish.
    public var batch = 1_000
    /// Maximum number of events per second that one payer may publish to one stream; four times as many to all streams
    /// together.
    public var publishesPerSecond = PayerLimit.standard(10_000)
    /// Maximum bytes of events per second that one payer may publish to one stream; four times as many to all streams.
    public var publishBytesPerSecond = PayerLimit.standard(16 << 20)
    /// Maximum number of sites per hour that one payer may begin in one stream; four times as many in all streams.
    public var newSitesPerHour = PayerLimit.standard(3_600)
    /// Maximum number of subscriptions per connection.
    public var subscriptions = 1_000
    /// Maximum number of subscriptions per payer on this node.
    public var payerSubscriptions = PayerLimit.standard(100_000)
    /// Maximum number of sockets, event streams and long polls per token subject on this node. 0: no limit; nil: a
    /// tenth of all connections.
    public var subjectConnections: Int?
    /// Maximum bytes of the filters of one connection's subscriptions.
    public var filterBytes = 64 << 10
    /// Maximum number of positions that one connection waits for at a time.
    public var waits = 64
    /// Maximum number of seqs per fetch.
    public var fetchSeqs: Int64 = 100_000
    /// Maximum number of fetches per connection that wait for their turn.
    public var fetches = 64
    /// Maximum unsent bytes of a connection for live events; above it the subscription ends with `lagged`. A connection
    /// with twice as many is closed at its next answer. That is more than `paceBytes` and all reads that may then be
    /// under way for it.
    public var sendQueueBytes = 4 << 20
    /// Unsent bytes of a connection above which its catch-up and its fetches pause.
    public var paceBytes = 1 << 20
    /// Maximum bytes of events on their way into the log. The gateway accepts no more until some are answered.
    public var inFlightBytes = 128 << 20
    /// Waiting time of a publish above which the log counts as `degraded`.
    public var degradedMs: Int64 = 2_000
    /// Waiting time of a publish above which the log counts as `unavailable`: new publishes are nacked.
    public var unavailableMs: Int64 = 5_000
    /// Delay before a tail that failed is restarted.
    public var tailPauseMs: Int64 = 500
    /// Size of the recent records that are kept for each partition.
    public var ringBytes = 32 << 20
    /// Total size of the log pages that are kept for clients that catch up on events older than these.
    public var pageBytes = 32 << 20
    /// Number of records of each partition that are read at the start, so that the ring is not empty.
    public var warmRecords: Int64 = 1_024
    /// Time for which the other gateways may read on without this one before it becomes unready. It becomes ready again
    /// once it has made up half of that. 0: it stays ready.
    public var peerLagMsMax: Int64 = 30_000
    /// Timeout for reading a position that the log has and the node has not.
    public var behindMs: Int64 = 2_000
    /// Delay before the log is asked again about a position beyond its end.
    public var aheadMs: Int64 = 5_000
    /// Timeout of an HTTP publish with an unknown outcome.
    public var publishMs: Int64 = 10_000
    /// How long an HTTP publish waits for the outcomes of its events if the client did not ask for `outcome=1`.
    public var outcomeMs: Int64 = 2_000
    /// True if `/debug/echo` sends back what it receives.
    public var echoes = false
    /// Inactivity timeout of a snapshot node that was asked. It is longer than the node waits for the records that it
    /// has to fold.
    public var peerMs: Int64 = 10_000
    /// Timeout for the start of an answer if other snapshot nodes can be asked. It is longer than a node that is behind
    /// waits and then takes to build the answer.
    var peerHeadMs: Int64 = 8_000
    /// Hedge delay: if a snapshot node has not begun to answer after this time, the gateway asks the next one too.
    var hedgeMs: Int64 = 300
    /// Timeout of a snapshot node that was asked for old events. The log has these events, too.
    var indexMs: Int64 = 1_000
    /// Microseconds of distance between coalesced writes for each listener of a stream on a loop. A write takes about a
    /// quarter of that.
    var listenerMicros = 30
    /// Maximum time for which a nack also holds up later ops of its site. A client does not resend an op that its fold
    /// has consumed, and the gateway may have read that op before the nack.
    var nackHoldMs: Int64 = 10_000
    /// Maximum duration of a long poll in seconds.
    var pollS: Int64 = 30
    /// Maximum number of errors that a client may cause on a connection before it is closed.
    public var errors = 100

    /// Bytes by which an event on its way into the log counts for more than its size.
    public static let eventCostBytesMin = 256

    /// The defaults.
    public init() {}
}
