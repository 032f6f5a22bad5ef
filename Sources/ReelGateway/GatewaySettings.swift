public import ReelNode

/// What an operator may set for a gateway. Times are in milliseconds, sizes in bytes.
public struct GatewaySettings: Sendable {
    /// What holds for every kind of node.
    public var node = NodeSettings()

    /// A new connection says hello within so long.
    public var helloMs: Int64 = 10_000
    /// A connection is pinged so long after it has opened or answered a ping, busy or not.
    public var pingMs: Int64 = 25_000
    /// A ping is answered within so long, longer where much may stand before it; two that are not end the connection.
    public var pongMs: Int64 = 8_000
    /// What waits for a client is looked at so often: by then it has to have taken all, or 16 KiB.
    var readMs: Int64 = 60_000
    /// A message that has begun is whole within so long, and a millisecond more for each byte that has come.
    var messageMs: Int64 = 30_000
    /// The largest frame, in both directions.
    public var frameBytes = 1 << 20
    /// The largest event, canonical and stamped.
    public var eventBytes = 256 << 10
    /// The most events of one publish.
    public var batch = 1_000
    /// Events that one payer may publish to one stream in a second; to all streams together, four times as many.
    public var publishesPerSecond = PayerLimit.standard(10_000)
    /// Bytes of events that one payer may publish to one stream in a second; to all streams, four times as many.
    public var publishBytesPerSecond = PayerLimit.standard(16 << 20)
    /// Sites that one payer may begin in one stream in an hour; in all streams, four times as many.
    public var newSitesPerHour = PayerLimit.standard(3_600)
    /// The most subscriptions of one connection.
    public var subscriptions = 1_000
    /// The most subscriptions of one payer on this node.
    public var payerSubscriptions = PayerLimit.standard(100_000)
    /// The most sockets, event streams and long polls of one token subject on this node; 0: no limit; nil: a tenth of
    /// all connections.
    public var subjectConnections: Int?
    /// The most bytes of the filters of one connection's subscriptions.
    public var filterBytes = 64 << 10
    /// Positions that one connection waits for at once.
    public var waits = 64
    /// The most seqs of one fetch.
    public var fetchSeqs: Int64 = 100_000
    /// Fetches of one connection that wait for their turn.
    public var fetches = 64
    /// A connection with more unsent bytes reads too slowly for what the tail brings; one that has twice as many is cut
    /// off at its next answer. That is more than `paceBytes` and all reads that may then be under way for it.
    public var sendQueueBytes = 4 << 20
    /// Catching up and fetching pause while a connection has more unsent bytes.
    public var paceBytes = 1 << 20
    /// Bytes of events on their way into the log: no more are taken until some are answered.
    public var inFlightBytes = 128 << 20
    /// A publish that waits longer makes the log `degraded`.
    public var degradedMs: Int64 = 2_000
    /// A publish that waits longer makes the log `unavailable`: new ones are nacked.
    public var unavailableMs: Int64 = 5_000
    /// So long a tail that broke is left alone before it is begun again.
    public var tailPauseMs: Int64 = 500
    /// Recent records that are kept, for each partition.
    public var ringBytes = 32 << 20
    /// What was read of the log for those who catch up behind these is kept for the next of them, so much of it in all.
    public var pageBytes = 32 << 20
    /// Records of each partition that are read at the start, so that the ring is not empty.
    public var warmRecords: Int64 = 1_024
    /// Other gateways read on for so long without this one, and it is not ready until it has made up half of that;
    /// 0: it stays ready.
    public var peerLagMsMax: Int64 = 30_000
    /// A position that the log has and the node has not is waited for.
    public var behindMs: Int64 = 2_000
    /// A position beyond the end of the log is asked for again after so long.
    public var aheadMs: Int64 = 5_000
    /// An HTTP publish whose outcome is not known is answered after so long.
    public var publishMs: Int64 = 10_000
    /// How long an HTTP publish waits for the outcomes of its events if the client did not ask for `outcome=1`.
    public var outcomeMs: Int64 = 2_000
    /// Whether `/debug/echo` sends back what it is sent.
    public var echoes = false
    /// A snapshot node that is asked may be silent for so long: longer than it waits for what it is to fold.
    public var peerMs: Int64 = 10_000
    /// Where there are others, it begins to answer within so long: longer than one that is behind waits, and then makes
    /// what was asked for.
    var peerHeadMs: Int64 = 8_000
    /// Hedge delay: if a snapshot node has not begun to answer after this time, the gateway asks the next one too.
    var hedgeMs: Int64 = 300
    /// Where it has events of somebody far behind, it answers within so long; the log has them, too.
    var indexMs: Int64 = 1_000
    /// For each of a loop's clients that listen to a stream, what is sent to them keeps a distance of so many
    /// microseconds more, where it keeps one: about four times what a write takes.
    var listenerMicros = 30
    /// So long a nack holds up later ops. What a client's fold has consumed is not sent again, and the gateway may have
    /// read it before the nack.
    var nackHoldMs: Int64 = 10_000
    /// A long poll waits for so many seconds at most.
    var pollS: Int64 = 30
    /// Errors of its own making that a connection is told before it is closed.
    public var errors = 100

    /// An event on its way into the log counts as so many bytes more than it has.
    public static let eventCostBytesMin = 256

    /// The defaults.
    public init() {}
}
