/// A frame that a client sends on its socket.
public struct ClientFrame: Equatable, Sendable {
    /// The content of the frame, by type.
    public enum Body: Equatable, Sendable {
        /// The first frame of a connection, sent exactly once.
        case hello(Hello)
        /// Replaces the token of `hello` before it expires; the answer is `welcome`.
        case renew(token: String)
        /// Begins a subscription or moves it.
        case subscribe(Subscribe)
        /// Begins or moves the subscriptions of several streams, each of them once.
        case subscribeAll([Subscribe])
        /// Ends a subscription.
        case unsubscribe(StreamName)
        /// Asks for ranges of seqs.
        case fetch(Fetch)
        /// Publishes events.
        case publish(Publish)
    }

    /// The frame.
    public var body: Body
    /// The value that answers and errors return: a JSON string or number, kept unchanged.
    public var ref: [UInt8]?

    /// Creates a frame.
    public init(_ body: Body, ref: [UInt8]? = nil) {
        self.body = body
        self.ref = ref
    }

    /// The maximum number of levels of objects and arrays in a frame.
    public static let levels = 36
    /// The maximum length of `ref` in bytes as it was written. The gateway keeps it until the answer, and every answer
    /// carries it.
    static let refBytes = 1_024
    /// The maximum number of streams of one `subscribe`.
    public static let subscribeStreams = 1_000
    /// The maximum number of ranges of one fetch.
    public static let fetchRanges = 64
    /// The maximum number of seqs of one fetch, over all its ranges.
    public static let fetchSeqs: Int64 = 100_000
}

extension ClientFrame {
    /// The introduction of a client.
    public struct Hello: Equatable, Sendable {
        /// The name and the version of the program.
        public var client: String
        /// The token of the user, if the gateway requires one.
        public var token: String?
        /// True if the client understands `nodes` frames.
        public var takesNodes: Bool

        /// Creates an introduction.
        public init(client: String, token: String? = nil, takesNodes: Bool = false) {
            self.client = client
            self.token = token
            self.takesNodes = takesNodes
        }
    }

    /// The position at which a subscription begins.
    public enum Position: Equatable, Sendable {
        /// After this seq; −1 means from the first event.
        case after(Seq)
        /// After the head that the gateway knows.
        case now
    }

    /// The last event of a stream that a client holds, as the seq and the hash of its record.
    public struct Witness: Equatable, Sendable {
        /// The seq of the event.
        public var seq: Seq
        /// FNV-1a, 64 bits, of key, a zero byte, value.
        public var hash: UInt64

        /// Creates the witness of an event.
        public init(seq: Seq, hash: UInt64) {
            self.seq = seq
            self.hash = hash
        }
    }

    /// Begins a subscription or moves it.
    public struct Subscribe: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The position at which to begin.
        public var position: Position
        /// The epoch of the position; required for a seq ≥ 0.
        public var epoch: Epoch?
        /// The models of the wanted objects; nil for all.
        public var models: [String]?
        /// A site. Its events are delivered even if their model is not in `models`.
        public var site: Site?
        /// The last event that the client holds.
        public var last: Witness?
        /// True if each event is delivered together with its outcome, after a snapshot node has folded it.
        public var hasOutcomes: Bool

        /// Creates a subscription.
        public init(
            stream: StreamName,
            position: Position,
            epoch: Epoch? = nil,
            models: [String]? = nil,
            site: Site? = nil,
            last: Witness? = nil,
            hasOutcomes: Bool = false
        ) {
            self.stream = stream
            self.position = position
            self.epoch = epoch
            self.models = models
            self.site = site
            self.last = last
            self.hasOutcomes = hasOutcomes
        }
    }

    /// Asks for ranges of seqs.
    public struct Fetch: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch of the seqs.
        public var epoch: Epoch
        /// The ranges in the order of the request.
        public var ranges: [ClosedRange<Seq>]
        /// True if each event is delivered together with its outcome, after a snapshot node has folded it.
        public var hasOutcomes: Bool

        /// Creates a request for these ranges.
        public init(stream: StreamName, epoch: Epoch, ranges: [ClosedRange<Seq>], hasOutcomes: Bool = false) {
            self.stream = stream
            self.epoch = epoch
            self.ranges = ranges
            self.hasOutcomes = hasOutcomes
        }
    }

    /// Publishes events.
    public struct Publish: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch that bases and guards refer to; required if there are any.
        public var epoch: Epoch?
        /// The events as JSON; each is checked separately.
        public var events: [[UInt8]]

        /// Creates a publish.
        public init(stream: StreamName, epoch: Epoch? = nil, events: [[UInt8]]) {
            self.stream = stream
            self.epoch = epoch
            self.events = events
        }
    }
}

/// The error of a frame that cannot be accepted, with the members that the answer needs.
public struct FrameError: Error, Equatable, Sendable {
    /// The reason.
    public var error: ReelError
    /// The frame's `ref`, if it could be read.
    public var ref: [UInt8]?
    /// The frame's stream, if it could be read.
    public var stream: StreamName?
}
