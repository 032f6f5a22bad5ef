/// What a gateway says on a client's socket.
public struct ServerFrame: Equatable, Sendable {
    /// The frame by its type.
    public enum Body: Equatable, Sendable {
        /// The answer to `hello`.
        case welcome(Welcome)
        /// A subscription stands.
        case subscribed(Subscribed)
        /// Events, and the proof that there are no others in their range.
        case events(Events)
        /// All live streams of the partition are proven up to this seq.
        case upto(partition: Int, seq: Seq)
        /// A subscription has ended, as was asked.
        case unsubscribed(StreamName)
        /// Events are durable.
        case ack(Ack)
        /// An event was not taken.
        case nack(Nack)
        /// The client reads too slowly: its subscription has ended at `seq`; the partition's last seq is `head`.
        case lagged(StreamName, seq: Seq, head: Seq)
        /// Go elsewhere: after so many milliseconds, to one of these URLs.
        case goaway(afterMs: Int64, nodes: [String])
        /// Where clients reach other nodes now. Only for clients that say in `hello` that they take it.
        case nodes([String])
        /// Something went wrong.
        case error(Failure)
    }

    /// The frame.
    public var body: Body
    /// The `ref` of what it answers: a JSON string or number as it stands.
    public var ref: [UInt8]?

    /// A frame.
    public init(_ body: Body, ref: [UInt8]? = nil) {
        self.body = body
        self.ref = ref
    }
}

extension ServerFrame {
    /// What a client may do on this connection.
    public struct Limits: Equatable, Sendable {
        /// Bytes of a frame.
        public var frame: Int
        /// Bytes of an event, canonical and stamped.
        public var event: Int
        /// Events of a publish.
        public var batch: Int
        /// Subscriptions of a connection.
        public var subscriptions: Int
        /// Seqs of a fetch.
        public var fetch: Int

        /// Limits.
        public init(frame: Int, event: Int, batch: Int, subscriptions: Int, fetch: Int) {
            self.frame = frame
            self.event = event
            self.batch = batch
            self.subscriptions = subscriptions
            self.fetch = fetch
        }
    }

    /// The answer to `hello`.
    public struct Welcome: Equatable, Sendable {
        /// The node's id.
        public var node: String
        /// The epoch of its log.
        public var epoch: Epoch
        /// How the log does: `ok`, or why it does not (see docs/reference/metrics.md).
        public var log: String
        /// The log's number: how many logs of this deployment were the current one before it.
        public var number: Int
        /// The deployment that the log belongs to; nil: the node is of an older build, and does not say it.
        public var deployment: Deployment?
        /// How many partitions the log has.
        public var partitions: Int
        /// What the client may do.
        public var limits: Limits
        /// Seconds between pings.
        public var pingS: Int
        /// Seconds for which the client's token still holds; nil: the node has no keys.
        public var tokenS: Int?
        /// Where clients reach other nodes, as far as those say so: where to go on when this one is lost.
        public var nodes: [String]

        /// A welcome.
        public init(
            node: String,
            epoch: Epoch,
            log: String = "ok",
            number: Int,
            deployment: Deployment? = nil,
            partitions: Int,
            limits: Limits,
            pingS: Int,
            tokenS: Int? = nil,
            nodes: [String] = []
        ) {
            self.tokenS = tokenS
            self.nodes = nodes
            self.node = node
            self.epoch = epoch
            self.log = log
            self.number = number
            self.deployment = deployment
            self.partitions = partitions
            self.limits = limits
            self.pingS = pingS
        }
    }

    /// A subscription stands; (after, head] follows, and then what comes.
    public struct Subscribed: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch of the seqs.
        public var epoch: Epoch
        /// The partition of the stream.
        public var partition: Int
        /// The first seq of the partition that can be read; −1: it is empty.
        public var first: Seq
        /// The last one; −1: it is empty.
        public var head: Seq
        /// The seq behind which the subscription begins.
        public var after: Seq

        /// The answer to a subscription.
        public init(stream: StreamName, epoch: Epoch, partition: Int, first: Seq, head: Seq, after: Seq) {
            self.stream = stream
            self.epoch = epoch
            self.partition = partition
            self.first = first
            self.head = head
            self.after = after
        }
    }

    /// Every event of the subscribed stream in `from ... to`.
    public struct Events: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The first seq of the proven range.
        public var from: Seq
        /// The last seq of the proven range; `from − 1` proves nothing.
        public var to: Seq
        /// The events by seq, barriers included.
        public var events: [DeliveredEvent]

        /// Events and the range that they prove.
        public init(stream: StreamName, from: Seq, to: Seq, events: [DeliveredEvent]) {
            self.stream = stream
            self.from = from
            self.to = to
            self.events = events
        }
    }

    /// An event that is durable at a seq.
    public struct Acked: Equatable, Sendable {
        /// Its site.
        public var site: Site
        /// Its op.
        public var op: Op
        /// Where it stands.
        public var seq: Seq

        /// A durable event.
        public init(site: Site, op: Op, seq: Seq) {
            self.site = site
            self.op = op
            self.seq = seq
        }
    }

    /// Events of a stream that are durable.
    public struct Ack: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch of the seqs.
        public var epoch: Epoch
        /// The events, by op within each site.
        public var acks: [Acked]

        /// Acks.
        public init(stream: StreamName, epoch: Epoch, acks: [Acked]) {
            self.stream = stream
            self.epoch = epoch
            self.acks = acks
        }
    }

    /// An event that was not taken.
    public struct Nack: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The event's site.
        public var site: Site
        /// The event's op.
        public var op: Op
        /// Why, and when to try again.
        public var error: ReelError

        /// A nack.
        public init(stream: StreamName, site: Site, op: Op, error: ReelError) {
            self.stream = stream
            self.site = site
            self.op = op
            self.error = error
        }
    }

    /// Something went wrong; the connection stays unless it is closed.
    public struct Failure: Equatable, Sendable {
        /// What, and the index of the bad event where there is one.
        public var error: ReelError
        /// The stream it is about.
        public var stream: StreamName?
        /// The node's epoch, where that is the matter.
        public var epoch: Epoch?
        /// The first seq that can be read, where that is the matter.
        public var first: Seq?
        /// The last one, where that is the matter.
        public var head: Seq?

        /// A failure.
        public init(
            _ error: ReelError,
            stream: StreamName? = nil,
            epoch: Epoch? = nil,
            first: Seq? = nil,
            head: Seq? = nil
        ) {
            self.error = error
            self.stream = stream
            self.epoch = epoch
            self.first = first
            self.head = head
        }
    }
}
