public import ReelCore

/// A device of Reel: it holds streams, shows their objects, and takes events, the same with and without a network.
///
///     let client = try SyncClient(nodes: ["http://127.0.0.1:7350"], store: .file("/data/app.reel"))
///     let todo = try await client.open("todo")
///     for await batch in await todo.changes { show(batch.objects) }
///
/// It needs the address of any one node. It keeps one connection, goes to another node when that one is lost or asks to
/// be left, and asks any node for what it is missing. It is never told that it is up to date; it can prove it, from its
/// coverage.
///
/// An actor on its transport's executor: what comes from the network is handled there in batches, without a change of
/// threads.
public actor SyncClient {
    /// Gives a token, such as an app's own server makes. Throws where there is none at the moment, and is cancelled
    /// where it has not answered after 30 seconds: the client says `noToken`, goes on with what it has, and asks again.
    public typealias TokenSource = @Sendable () async throws -> String

    /// Where own events and what was received are kept.
    public enum Store: Sendable {
        /// In memory: for tests, and for devices that only look on.
        case memory
        /// In this file, made if it is not there. One process at a time. It belongs to one user, whose name is the
        /// subject of the tokens; without one it is for nodes that have no keys.
        case file(String, user: String? = nil)
    }

    /// Where missing seqs are asked for.
    public enum GapSource: Sendable {
        /// On the connection; from another node if it does not answer.
        case connection
        /// From another node by HTTP; on the connection if that fails.
        case peers
    }

    let transport: any Transport
    let gapSource: GapSource
    /// The user whose events these are; nil: nobody, or not known yet where nothing is kept.
    var user: String?
    var stamp = Stamp.unknown
    /// What it says to nodes that have keys; nil: nothing.
    var token: String?
    let renewToken: TokenSource?
    /// The connection, timers, streams and store, which the client's `deinit` releases on the executor.
    nonisolated let resources: ClientResources
    var random: SeededGenerator
    var failover: Failover
    var polls = PollSchedule()
    var counters = SyncStatistics()
    var links = 0
    var lostAtMs: Int64?
    var waits = 0
    var isTurnScheduled = false
    var isClosed = false
    /// It takes nothing more, and ends its sites.
    var isEnding = false
    var failure: ReelError?
    /// What the store has lost before it was opened, as long as the app was not told.
    private var lostCommits: String?
    /// The highest number of a log that a node was at: a node at a lower one is behind.
    var logNumber: Int
    /// The deployment that the device belongs to; nil: it has met none.
    var deployment: Deployment?
    /// Of the log's number and the deployment.
    var logIsWritten = true
    /// Another deployment, which a node has named since the last welcome.
    var otherDeployment: Deployment?
    var problems = ProblemList()
    /// What the last node that said welcome takes as an event, stamped.
    var eventLimit: Int?

    /// One attempt at a connection, and what came of it.
    struct Link {
        let number: Int
        let node: String
        var connection: (any TransportConnection)?
        var welcome: ServerFrame.Welcome?
        var timer: (any TransportRequest)?
        var leaving: (any TransportRequest)?
        var renewal: (any TransportRequest)?
        /// It is open, and nothing can be said on it yet.
        var awaitsToken = false
        /// Nil where the node has no keys.
        var tokenEndsAtMs: Int64?
        var lastHeardMs: Int64
        var isPinged = false
    }

    /// A client of these nodes, `http://HOST:PORT` each.
    ///
    /// `gaps`: where missing seqs are asked for. `seed`: makes its choices (nodes, pauses, sites) those of an earlier
    /// run; for tests. `token`: for nodes that have keys; `renewToken` is asked for the first one if there is none, for
    /// another before it expires, and where a node does not take it. A token of another user than the store's is never
    /// said to a node. Without nodes the client works offline.
    ///
    /// Throws `bad_address` for a node or a store's path that cannot be one; `store_user` if the store or the token
    /// belongs to another user, before anything of the store is read; `store_busy` if another process or client has the
    /// store open; and another code that begins with `store_` if the store cannot be used.
    public init(
        nodes: [String],
        store: Store,
        transport: any Transport,
        gaps: GapSource = .connection,
        token: String? = nil,
        renewToken: TokenSource? = nil,
        seed: UInt64? = nil
    ) throws(ReelError) {
        for node in nodes { try transport.check(node) }
        self.transport = transport
        gapSource = gaps
        self.token = token
        self.renewToken = renewToken
        switch store {
        case .memory:
            user = token.flatMap(TokenSubject.read)
            resources = ClientResources(store: nil)
        case .file(let path, let named):
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw ReelError(.badAddress, "found the store \(path.debugDescription), expected the path of a file")
            }
            let user = try Self.owner(named, token: token, renewsToken: renewToken != nil)
            let store = try DeviceStore(path: path)
            try store.claim(for: user)
            self.user = user
            resources = ClientResources(store: store)
        }
        if resources.store?.hasLostCommits == true {
            lostCommits =
                "the -wal beside the store is gone, which a client that did not close it had left: what was published"
                + " last is lost, unless it was sent"
        }
        let stored = try resources.store?.client()
        logNumber = stored?.logNumber ?? 0
        deployment = stored?.deployment
        let seed = seed ?? UInt64.random(in: .min ... .max)
        random = SeededGenerator(seed: seed)
        failover = Failover(nodes: nodes, seed: seed &+ 1)
        if let lostCommits {
            _ = problems.apply(.storeFailed(ReelError(.storeLost, lostCommits)), nowMs: transport.nowMs)
        }
    }

    /// Ends the connection with the last reference to the client. Events that were received in this turn are not
    /// committed.
    deinit {
        let (resources, transport) = (resources, transport)
        transport.execute {
            resources.end(.closed)
            // The transport owns the executor, so it must live until this body has run.
            withExtendedLifetime(transport) {}
        }
    }

    /// The transport's executor.
    nonisolated public var unownedExecutor: UnownedSerialExecutor { transport.executor.asUnownedSerialExecutor() }

    // MARK: Streams

    /// Opens a stream: what the device holds of it can be read at once, and the rest begins to come. Opening it again
    /// gives the same stream; `start` counts for a device that holds nothing of it yet.
    ///
    /// Throws a `ReelError`: `bad_stream` for a name that is none, a code that begins with `store_` if the store
    /// failed, `closed` once the client is closed.
    @discardableResult
    public func open(_ name: String, from start: SyncStart = .snapshot) throws -> SyncStream {
        guard let name = StreamName(name) else {
            throw ReelError(.badStream, "found \(name.debugDescription), expected \(StreamName.rule)")
        }
        try checkOpen()
        if opened[name] == nil { try begin(name, start) }
        return SyncStream(client: self, name: name)
    }

    func begin(_ name: StreamName, _ start: SyncStart) throws(ReelError) {
        let stream = try restore(name, start)
        opened.append(stream)
        if link == nil { connectNext() }
        leaveFormerEpoch(stream)
        advance(stream)
    }

    /// All streams that the device holds, by name: what it has opened, and what its file knows of earlier runs.
    ///
    /// Throws a `ReelError`: a code that begins with `store_` if the store failed, `closed` once the client is closed.
    public func streams() throws -> [HeldStream] {
        try checkOpen()
        var queued = try store?.queued() ?? [:]
        for stream in opened.values { queued[stream.name.description] = stream.outbox.entries.count }
        return queued.sorted { $0.key < $1.key }.map { HeldStream(id: $0.key, queued: $0.value) }
    }

    func checkOpen() throws(ReelError) {
        if let failure { throw failure }
        if isClosed || isEnding { throw .closed }
    }

    // MARK: The client

    /// What it has done so far.
    public var statistics: SyncStatistics { counters }

    /// The node that it is connected with.
    public var connectedNode: String? { link?.welcome == nil ? nil : link?.node }

    /// The nodes that it knows: those given, then those that nodes have named.
    public var nodes: [String] { failover.nodes }

    /// What happens from now on that an app may want to say: connections, clones, events that are held. At most the
    /// last 256 wait for each reader.
    public var notices: SyncNotices {
        SyncNotices(source: FeedSource(noticeFeeds, first: lostCommits.take().map { .storeLost(reason: $0) }))
    }

    func notify(_ notice: SyncNotice) { noticeFeeds.add(notice) }

    func end(_ error: ReelError) {
        isClosed = true
        dropLink()
        resources.end(error)
    }

    /// The store failed: nothing that is shown or sent from here on would be true, so the client stops.
    func fail(_ error: ReelError) {
        failure = error
        notify(.storeFailed(reason: error.message))
        note(.storeFailed(error))
        end(error)
    }
}

extension SyncClient {
    /// The present connection.
    var link: Link? {
        get { resources.link }
        _modify { yield &resources.link }
    }

    var opened: OpenStreams {
        get { resources.opened }
        _modify { yield &resources.opened }
    }

    var tokenQuestion: TokenQuestion? {
        get { resources.tokenQuestion }
        _modify { yield &resources.tokenQuestion }
    }

    var pollTimer: (any TransportRequest)? {
        get { resources.pollTimer }
        _modify { yield &resources.pollTimer }
    }

    var answerTimer: (any TransportRequest)? {
        get { resources.answerTimer }
        _modify { yield &resources.answerTimer }
    }

    var stateSinks: [AsyncStream<SyncState>.Continuation] {
        get { resources.stateSinks }
        _modify { yield &resources.stateSinks }
    }

    var noticeFeeds: Feeds<SyncNotice> { resources.noticeFeeds }

    /// The device's file; nil for a client that keeps nothing, and for a closed client.
    var store: DeviceStore? { resources.store }
}
