public import ReelCore

/// The settings of a load run.
public struct LoadPlan: Sendable {
    /// The gateways, `http://HOST:PORT` or `https://HOST:PORT` each. A client chooses one at random, and another one
    /// when it is lost.
    public var urls: [String]
    /// The trusted authorities for gateways at `https`, as a PEM file; nil: those of the system.
    public var authorities: String?
    /// The token of all clients, for gateways that have keys.
    public var token: String?
    /// The streams. Clients are spread over them evenly.
    public var streams: [StreamName]
    /// The number of clients that publish, each with its own site and connection.
    public var publishers = 10
    /// The number of these publishers that are offline for four of every ten seconds. They continue to create events
    /// meanwhile.
    public var sleepers = 0
    /// The number of clients that listen, each to one stream.
    public var readers = 10
    /// The number of clients that publish and listen, and write to one text together.
    public var editors = 0
    /// The number of cold readers per second. Each loads the folded state, listens, and ends when it is live.
    public var coldStarts = 0
    /// Events per second of all publishers and editors together, even if they are not acked in time.
    public var rate = 100.0
    /// The approximate size of a publisher's event in bytes.
    public var size = 200
    /// The time in seconds after which all connections are cut at once, repeatedly; nil: never.
    public var stormSeconds: Double?
    /// The duration of publishing in seconds; nil: until `stop`.
    public var seconds: Double?
    /// The maximum time in seconds until the first client is accepted; after it the run fails. Two seconds are enough
    /// if no URL leads to a gateway (no server, or another kind of server). If all gateways refuse the token, the run
    /// fails at once.
    public var patienceSeconds = 8.0
    /// The maximum time in seconds after publishing until everything is acked and has arrived.
    public var settleSeconds = 30.0
    /// The seed of all random choices, such as each client's first gateway.
    public var seed: UInt64 = 1
    /// The folder for histories; nil: none are kept.
    public var histories: HistoryFolder?

    /// Creates a plan of a small load on these gateways and streams.
    public init(urls: [String], streams: [StreamName]) {
        self.urls = urls
        self.streams = streams
    }

    /// Returns streams with the names `PREFIX-0`, `PREFIX-1`, …; nil if these are not valid names of streams.
    public static func streams(_ prefix: String, count: Int) -> [StreamName]? {
        let names = (0..<max(1, count)).compactMap { StreamName(count == 1 ? prefix : "\(prefix)-\($0)") }
        return names.count == max(1, count) ? names : nil
    }

    /// The maximum number of sockets that the run needs.
    var sockets: Int { publishers + readers + editors + (coldStarts > 0 ? LoadStage.coldMax : 0) }
}
