/// A frame that a gateway sends on a client's socket.
public struct ServerFrame: Equatable, Sendable {
    /// The content of the frame, by type.
    public enum Body: Equatable, Sendable {
        /// The answer to `hello`.
        case welcome(Welcome)
        /// A subscription is active.
        case subscribed(Subscribed)
        /// Events, and the proof that there are no others in their range.
        case events(Events)
        /// All live streams of the partition are proven up to this seq.
        case upto(partition: Int, seq: Seq)
        /// A subscription has ended at the client's request.
        case unsubscribed(StreamName)
        /// Events are durable.
        case ack(Ack)
        /// An event was not accepted.
        case nack(Nack)
        /// The client reads too slowly. Its subscription has ended at `seq`; the partition's last seq is `head`.
        case lagged(StreamName, seq: Seq, head: Seq)
        /// The client should connect to another node: one of `nodes`, after `afterMs` milliseconds.
        case goaway(afterMs: Int64, nodes: [String])
        /// The current URLs of other nodes. Sent only to clients with `takesNodes` in their `hello`.
        case nodes([String])
        /// An error has occurred.
        case error(Failure)
    }

    /// The frame.
    public var body: Body
    /// The `ref` of the frame that this one answers: a JSON string or number, kept unchanged.
    public var ref: [UInt8]?

    /// Creates a frame.
    public init(_ body: Body, ref: [UInt8]? = nil) {
        self.body = body
        self.ref = ref
    }
}

extension ServerFrame {
    /// The limits of this connection.
    public struct Limits: Equatable, Sendable {
        /// The maximum size of a frame in bytes.
        public var frame: Int
        /// The maximum size of an event in bytes, in canonical form with stamps.
        public var event: Int
        /// The maximum number of events of a publish.
        public var batch: Int
        /// The maximum number of subscriptions of a connection.
        public var subscriptions: Int
        /// The maximum number of streams of a `subscribe`; nil if the node is of an older build, which takes one.
        public var subscribe: Int?
        /// The maximum number of seqs of a fetch.
        public var fetch: Int

        /// Creates limits.
        public init(frame: Int, event: Int, batch: Int, subscriptions: Int, subscribe: Int? = nil, fetch: Int) {
            self.subscribe = subscribe
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
        /// The state of the log: `ok`, or the reason why it is not (see docs/reference/metrics.md).
        public var log: String
        /// The number of the log: the number of earlier logs of this deployment.
        public var number: Int
        /// The deployment of the log; nil if the node is of an older build that does not send it.
        public var deployment: Deployment?
        /// The number of partitions of the log.
        public var partitions: Int
        /// The limits of the client.
        public var limits: Limits
        /// The interval between pings, in seconds.
        public var pingS: Int
        /// The remaining lifetime of the client's token in seconds; nil if the node has no keys.
        public var tokenS: Int?
        /// The URLs of other nodes that announce one. The client can use them when the connection is lost.
        public var nodes: [String]

        /// Creates a welcome.
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

    /// An active subscription. The events in (after, head] follow, and then the live ones.
    public struct Subscribed: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch of the seqs.
        public var epoch: Epoch
        /// The partition of the stream.
        public var partition: Int
        /// The first seq of the partition that can be read; −1 if the partition is empty.
        public var first: Seq
        /// The last seq of the partition; −1 if it is empty.
        public var head: Seq
        /// The subscription begins after this seq.
        public var after: Seq

        /// Creates the answer to a subscription.
        public init(stream: StreamName, epoch: Epoch, partition: Int, first: Seq, head: Seq, after: Seq) {
            self.stream = stream
            self.epoch = epoch
            self.partition = partition
            self.first = first
            self.head = head
            self.after = after
        }
    }

    /// All events of the subscribed stream in `from ... to`.
    public struct Events: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The first seq of the proven range.
        public var from: Seq
        /// The last seq of the proven range; `from − 1` means that nothing is proven.
        public var to: Seq
        /// The events by seq, including barriers.
        public var events: [DeliveredEvent]

        /// Creates events with the range that they prove.
        public init(stream: StreamName, from: Seq, to: Seq, events: [DeliveredEvent]) {
            self.stream = stream
            self.from = from
            self.to = to
            self.events = events
        }
    }

    /// An event that is durable at a seq.
    public struct Acked: Equatable, Sendable {
        /// The site of the event.
        public var site: Site
        /// The op of the event.
        public var op: Op
        /// The seq of the event.
        public var seq: Seq

        /// Creates a durable event.
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
        /// The events, ordered by op within each site.
        public var acks: [Acked]

        /// Creates acknowledgements.
        public init(stream: StreamName, epoch: Epoch, acks: [Acked]) {
            self.stream = stream
            self.epoch = epoch
            self.acks = acks
        }
    }

    /// An event that was not accepted.
    public struct Nack: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The event's site.
        public var site: Site
        /// The event's op.
        public var op: Op
        /// The reason, and the time of a retry.
        public var error: ReelError

        /// Creates a nack.
        public init(stream: StreamName, site: Site, op: Op, error: ReelError) {
            self.stream = stream
            self.site = site
            self.op = op
            self.error = error
        }
    }

    /// An error. The connection stays open unless the gateway closes it.
    public struct Failure: Equatable, Sendable {
        /// The reason, with the index of the bad event if there is one.
        public var error: ReelError
        /// The stream that the error concerns; nil if it concerns none.
        public var stream: StreamName?
        /// The node's epoch, if the error concerns it.
        public var epoch: Epoch?
        /// The first seq that can be read, if the error concerns it.
        public var first: Seq?
        /// The last seq of the partition, if the error concerns it.
        public var head: Seq?

        /// Creates a failure.
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
