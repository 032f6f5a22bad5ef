public import ReelCore

/// What a load run does, and to whom.
public struct LoadPlan: Sendable {
    /// The gateways, `http://HOST:PORT` or `https://HOST:PORT` each. A client takes one by chance, and another one when
    /// it is lost.
    public var urls: [String]
    /// The authorities that vouch for gateways at `https`, as a PEM file; nil: those that the system knows.
    public var authorities: String?
    /// Who all clients are, where the gateways have keys.
    public var token: String?
    /// The streams; clients are spread over them evenly.
    public var streams: [StreamName]
    /// Clients that publish, each a site with a connection of its own.
    public var publishers = 10
    /// Of these, so many are offline for four of every ten seconds, and go on making events meanwhile.
    public var sleepers = 0
    /// Clients that listen, each on one stream.
    public var readers = 10
    /// Clients that publish and listen, and write in one text together.
    public var editors = 0
    /// Readers a second that begin with nothing: they load the folded state, listen, and are gone when they are live.
    public var coldStarts = 0
    /// Events a second, all publishers and editors together, whether or not they are acked in time.
    public var rate = 100.0
    /// Bytes of a publisher's event, about.
    public var size = 200
    /// Every so many seconds all connections are cut at once; nil: never.
    public var stormSeconds: Double?
    /// Seconds of publishing; nil: until `stop`.
    public var seconds: Double?
    /// Seconds that may pass until the first client is let in; later there is nobody to load. Two are enough where no
    /// URL leads to a gateway (nobody listens, or somebody else does), and none where all gateways refuse the token.
    public var patienceSeconds = 8.0
    /// Seconds that all may take afterwards until everything is acked and has arrived.
    public var settleSeconds = 30.0
    /// Decides who begins at which gateway, and all else that chance decides.
    public var seed: UInt64 = 1
    /// Where histories are kept; nil: none are.
    public var histories: HistoryFolder?

    /// A small load on these gateways and streams.
    public init(urls: [String], streams: [StreamName]) {
        self.urls = urls
        self.streams = streams
    }

    /// Streams of the names `PREFIX-0`, `PREFIX-1`, …; nil if that is no name of a stream.
    public static func streams(_ prefix: String, count: Int) -> [StreamName]? {
        let names = (0..<max(1, count)).compactMap { StreamName(count == 1 ? prefix : "\(prefix)-\($0)") }
        return names.count == max(1, count) ? names : nil
    }

    /// How many sockets it needs at most.
    var sockets: Int { publishers + readers + editors + (coldStarts > 0 ? LoadStage.coldMax : 0) }
}
