/// What a client says on its socket.
public struct ClientFrame: Equatable, Sendable {
    /// The frame by its type.
    public enum Body: Equatable, Sendable {
        /// First, once.
        case hello(Hello)
        /// A token in place of the one in hello, before that expires; answered by welcome.
        case renew(token: String)
        /// Begins a subscription or moves it.
        case subscribe(Subscribe)
        /// Ends a subscription.
        case unsubscribe(StreamName)
        /// Asks for ranges of seqs.
        case fetch(Fetch)
        /// Hands events over.
        case publish(Publish)
    }

    /// The frame.
    public var body: Body
    /// What answers and errors carry back: a JSON string or number as it stands.
    public var ref: [UInt8]?

    /// A frame.
    public init(_ body: Body, ref: [UInt8]? = nil) {
        self.body = body
        self.ref = ref
    }

    /// Levels of objects and arrays in a frame.
    public static let levels = 36
    /// The longest `ref`, in bytes as it was written: it is kept until the answer, and carried by each.
    static let refBytes = 1_024
    /// Ranges that one fetch may name.
    public static let fetchRanges = 64
    /// Seqs that one fetch may name in all.
    public static let fetchSeqs: Int64 = 100_000
}

extension ClientFrame {
    /// Who speaks.
    public struct Hello: Equatable, Sendable {
        /// Name and version of the program.
        public var client: String
        /// Who it is for, where the gateway wants to know.
        public var token: String?
        /// True if the client takes frames `nodes`.
        public var takesNodes: Bool

        /// A greeting.
        public init(client: String, token: String? = nil, takesNodes: Bool = false) {
            self.client = client
            self.token = token
            self.takesNodes = takesNodes
        }
    }

    /// Where a subscription begins.
    public enum Position: Equatable, Sendable {
        /// Behind this seq; −1: everything.
        case after(Seq)
        /// Behind the head as the gateway knows it.
        case now
    }

    /// The last event of a stream that a client holds: seq and hash of its record.
    public struct Witness: Equatable, Sendable {
        /// Its seq.
        public var seq: Seq
        /// FNV-1a 64 of key, a zero byte, value.
        public var hash: UInt64

        /// The witness of an event.
        public init(seq: Seq, hash: UInt64) {
            self.seq = seq
            self.hash = hash
        }
    }

    /// Begins a subscription or moves it.
    public struct Subscribe: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// Where to begin.
        public var position: Position
        /// The epoch of the position; there for a seq ≥ 0.
        public var epoch: Epoch?
        /// Only objects of these models; nil: all.
        public var models: [String]?
        /// A site whose events come whatever their model.
        public var site: Site?
        /// The last event held.
        public var last: Witness?
        /// True if each event comes with its outcome, once a snapshot node has folded it.
        public var hasOutcomes: Bool

        /// A subscription.
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
        /// The ranges, as they were asked for.
        public var ranges: [ClosedRange<Seq>]
        /// True if each event comes with its outcome, once a snapshot node has folded it.
        public var hasOutcomes: Bool

        /// A question for these ranges.
        public init(stream: StreamName, epoch: Epoch, ranges: [ClosedRange<Seq>], hasOutcomes: Bool = false) {
            self.stream = stream
            self.epoch = epoch
            self.ranges = ranges
            self.hasOutcomes = hasOutcomes
        }
    }

    /// Hands events over.
    public struct Publish: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The epoch that bases and guards belong to; needed where there are any.
        public var epoch: Epoch?
        /// The events as JSON; each is checked by itself.
        public var events: [[UInt8]]

        /// Events to be published.
        public init(stream: StreamName, epoch: Epoch? = nil, events: [[UInt8]]) {
            self.stream = stream
            self.epoch = epoch
            self.events = events
        }
    }
}

/// A frame that cannot be taken, and what the answer to it carries.
public struct FrameError: Error, Equatable, Sendable {
    /// What is wrong with it.
    public var error: ReelError
    /// The frame's `ref`, where it could be read.
    public var ref: [UInt8]?
    /// The frame's stream, where it could be read.
    public var stream: StreamName?
}
