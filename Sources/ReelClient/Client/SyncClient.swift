internal import ReelBase
public import ReelCore

/// A device of Reel. It holds streams, shows their objects and takes events, with and without a network.
///
///     let client = try SyncClient(nodes: ["http://127.0.0.1:7350"], store: .file("/data/app.reel"))
///     let todo = try await client.open("todo")
///     for await batch in await todo.changes() { show(batch.objects) }
///
/// The client needs the address of any one node. It keeps one connection, and moves to another node when the connection
/// is lost or the node asks it to leave. It may request missing events from any node. No node tells it that it is up to
/// date; it proves that from its coverage.
///
/// The actor runs on its transport's executor. Input from the network is handled there in batches, without a change of
/// threads.
public actor SyncClient {
    /// Returns a token, such as one that an app's own server makes. Throws if there is none at the moment. The call is
    /// cancelled if it has not returned after 30 seconds: the client then reports `tokenUnavailable`, continues with
    /// its present token, and asks again.
    public typealias TokenSource = @Sendable () async throws -> String

    /// The place for own events and for received data.
    public enum Store: Sendable {
        /// In memory: for tests, and for devices that only read. The client keeps nothing.
        case memory
        /// In a storage of the app. Only one client may use it at a time, and closes it at its end. It belongs to one
        /// user, like a file.
        case storage(any DeviceStorage, user: String? = nil)
        /// In this file, which is created if it does not exist. Its folder must exist, and `~` in the path is not
        /// expanded. Only one process may use it at a time. The file belongs to one user, whose name is the subject of
        /// the tokens. Without a user it is for nodes that have no keys.
        case file(String, user: String? = nil)
    }

    /// The source from which missing seqs are requested first.
    public enum GapSource: Sendable {
        /// The connection; another node if it does not answer.
        case connection
        /// Another node, by HTTP; the connection if that fails.
        case peers
    }

    let transport: any SyncTransport
    let gapSource: GapSource
    /// The user that the events belong to. Nil if there is none, or if nothing is kept and the user is not known yet.
    var user: String?
    var stamp = Stamp.unknown
    /// The token that is sent to nodes; nil: none.
    var token: String?
    let renewToken: TokenSource?
    /// The connection, timers, streams and store, which the client's `deinit` releases on the executor.
    nonisolated let resources: ClientResources
    var random: SeededGenerator
    var failover: Failover
    var polls = PollSchedule()
    var digests = DigestQueue()
    /// The subscribes that are sent with the next frame, or at the end of the turn.
    var unsentSubscribes: [ClientFrame.Subscribe] = []
    var counters = SyncStatistics()
    /// True if nothing outlives the client.
    let keepsNothing: Bool
    /// The limit of the objects that the client holds in memory, in bytes.
    var cacheBytes: Int
    /// The time since which there has been no node, by the wall clock; nil: there is one.
    var offlineSinceMs: Int64?
    /// True if the status of the client must be shown at the end of the turn.
    var isStatusDue = false
    /// The time of the last news of a node, by the wall clock.
    var heardMs: Int64 = 0
    /// The streams whose status may have changed in this turn.
    var changedStatuses: [StreamState] = []
    /// The limit of a state that a node sends, in bytes.
    var stateBytesMax = 1 << 30
    /// True if the generations that an earlier run has left were looked for.
    var hasLookedForUnused = false
    /// The number of turns that were committed.
    var turns: Int64 = 0
    var links = 0
    /// The number of times that a stream was opened.
    var openings = 0
    /// The number of subscriptions that were ended while the connection stays.
    var unsubscribes = 0
    var lostAtMs: Int64?
    var waits = 0
    var isTurnScheduled = false
    var isClosed = false
    /// True if the client accepts nothing more and ends its sites.
    var isEnding = false
    var failure: ReelError?
    /// The commits that the store has lost before it was opened; nil once the app was told.
    private var lostCommits: String?
    /// The highest log number that a node has named. A node with a lower one is behind.
    var logNumber: Int
    /// The deployment that the device belongs to; nil: it has met none.
    var deployment: Deployment?
    /// True if the log's number and the deployment are stored.
    var logIsWritten = true
    /// Another deployment, which a node has named since the last `welcome`; nil: none.
    var otherDeployment: Deployment?
    var problems = ProblemList()
    /// The largest stamped event that the last node accepted, in bytes, as its `welcome` says.
    var eventLimit: Int?

    /// One attempt to connect, and the connection that resulted.
    struct Link {
        let number: Int
        let node: String
        var connection: (any TransportConnection)?
        var welcome: ServerFrame.Welcome?
        var timer: (any TransportHandle)?
        var leaving: (any TransportHandle)?
        var renewal: (any TransportHandle)?
        /// True if the node has not answered a request for digests, because it is of an older build or in trouble.
        var lacksDigests = false
        /// True if the connection is open and nothing can be sent yet, because there is no token.
        var awaitsToken = false
        /// The time at which the token ends; nil if the node has no keys.
        var tokenEndsAtMs: Int64?
        var lastHeardMs: Int64
        var isPinged = false
        var delay = LinkDelay()
    }

    /// Creates a client of these nodes. Without nodes the client works offline.
    ///
    /// - Parameters:
    ///   - nodes: the addresses of nodes, `http://HOST:PORT` each, or another form that the transport accepts.
    ///   - store: the place for own events and received data.
    ///   - transport: the connections, requests and timers that the client uses.
    ///   - gaps: the source from which missing seqs are requested first.
    ///   - cacheBytes: the limit of the objects that the client holds in memory, in bytes. All other objects are read
    ///     from the store when they are needed. The limit is approximate, and at least 1 MiB.
    ///   - token: the token for nodes that have keys. A token of another user than the store's is never sent to a node.
    ///   - renewToken: returns tokens. It is called for the first token if there is none, for another token before the
    ///     present one expires, and when a node refuses the token.
    ///   - seed: the seed of all random choices (nodes, pauses, sites), to repeat an earlier run; for tests.
    /// - Throws: `bad_address` for a node or a store's path that is not valid. `store_user` if the store or the token
    ///   belongs to another user, before any content of the store is read. `store_busy` if another process or client
    ///   has the store open. Another code that begins with `store_` if the store cannot be used.
    public init(
        nodes: [String],
        store: Store,
        transport: any SyncTransport,
        gaps: GapSource = .connection,
        cacheBytes: Int = 16 << 20,
        token: String? = nil,
        renewToken: TokenSource? = nil,
        seed: UInt64? = nil
    ) throws(ReelError) {
        for node in nodes { try transport.check(node) }
        self.transport = transport
        gapSource = gaps
        self.cacheBytes = max(1 << 20, cacheBytes)
        self.token = token
        self.renewToken = renewToken
        let storage: any DeviceStorage
        var hasLostCommits = false
        switch store {
        case .memory:
            storage = MemoryStorage()
            user = token.flatMap(TokenSubject.read)
            keepsNothing = true
        case .storage(let own, let named):
            user = try Self.owner(named, token: token, renewsToken: renewToken != nil)
            storage = own
            keepsNothing = false
        case .file(let path, let named):
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw ReelError(.badAddress, "found the store \(path.debugDescription), expected the path of a file")
            }
            user = try Self.owner(named, token: token, renewsToken: renewToken != nil)
            let file = try SQLiteStorage.open(device: path)
            hasLostCommits = file.hasLostCommits
            storage = file
            keepsNothing = false
        }
        if !keepsNothing { try DeviceStore.removeSignedOut(storage) }
        let device = try DeviceStore(storage)
        if !keepsNothing { try device.claim(for: user) }
        resources = ClientResources(store: device)
        if hasLostCommits {
            lostCommits =
                "the -wal beside the store is gone, which a client that did not close it had left: what was published"
                + " last is lost, unless it was sent"
        }
        logNumber = device.client.logNumber
        deployment = device.client.deployment
        let seed = seed ?? UInt64.random(in: .min ... .max)
        random = SeededGenerator(seed: seed)
        failover = Failover(nodes: nodes, seed: seed &+ 1)
        if let lostCommits {
            _ = problems.apply(.storeFailed(ReelError(.storeLost, lostCommits)), nowMs: transport.wallMs)
        }
        resources.board.show(SyncStatus(deployment: deployment?.description, problems: problems.seen()))
    }

    /// Ends the connection when the last reference to the client is released. Events that were received in this turn
    /// are not committed.
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

    /// Opens a stream. The part that the device holds can be read at once, and the rest is requested. Opening it again
    /// returns the same stream.
    ///
    /// - Parameters:
    ///   - name: the name of the stream.
    ///   - start: the position where reading begins on a device that holds nothing of the stream yet.
    /// - Throws: A `ReelError`: `bad_stream` for a name that is not valid, a code that begins with `store_` if the
    ///   store failed, `closed` once the client is closed.
    @discardableResult
    public func open(_ name: String, from start: StartPosition = .snapshot) throws -> SyncStream {
        guard let name = StreamName(name) else {
            throw ReelError(.badStream, "found \(name.debugDescription), expected \(StreamName.rule)")
        }
        try checkOpen()
        return SyncStream(client: self, opening: try begin(name, start).opening)
    }

    /// Returns the open stream of this name, and opens it if it is not open.
    @discardableResult
    func begin(_ name: StreamName, _ start: StartPosition) throws(ReelError) -> StreamState {
        if let stream = opened[name] { return stream }
        let stream = try restore(name, start)
        opened.append(stream)
        if !hasLookedForUnused { planUpkeep() }
        if link == nil { connectNext() }
        let isOfFormerEpoch = leaveFormerEpoch(stream)
        let dropsState = link?.welcome.map { leaveOtherPartitions(stream, $0) } ?? false
        // A state is dropped before the connection is known, as when a node sends `welcome`.
        let opening = StreamSync.Opening(
            link: dropsState ? nil : syncLink,
            hasPlace: hasPlace(stream),
            isOfFormerEpoch: isOfFormerEpoch
        )
        step(stream, .opened(opening))
        if dropsState, let syncLink {
            step(stream, .stateDropped)
            step(stream, .connectionOpened(syncLink, hasPlace: hasPlace(stream)))
        }
        // The app can read the status when `open` returns.
        if isStatusDue { showStatus() }
        showStatus(of: stream)
        if let failure { throw failure }
        return stream
    }

    /// Returns all streams that the device holds, sorted by name: the open streams, and those of earlier runs in its
    /// file.
    ///
    /// - Throws: A `ReelError`: a code that begins with `store_` if the store failed, `closed` once the client is
    ///   closed.
    public func streams() throws -> [LocalStream] {
        takeEnqueued()
        if opened.values.contains(where: \.isDirty) { finishTurn() }
        try checkOpen()
        var queued = try store?.queued() ?? [:]
        for stream in opened.values { queued[stream.name.description] = stream.outbox.entries.count }
        return queued.sorted { $0.key < $1.key }.map { LocalStream(id: $0.key, pendingCount: $0.value) }
    }

    func checkOpen() throws(ReelError) {
        if let failure { throw failure }
        if isClosed || isEnding { throw .closed }
    }

    // MARK: The client

    /// The counters of the client's work since it was made.
    public var statistics: SyncStatistics { counters }

    /// The node that the client is connected with; nil: none.
    var connectedNode: String? { link?.welcome == nil ? nil : link?.node }

    /// The nodes that the client knows: the configured ones, then those that nodes have named.
    public var nodes: [String] { failover.nodes }

    /// Returns the notices from now on that an app may want to show or log, such as connections, clones and events that
    /// wait. At most the last 256 wait for each reader.
    public func notices() -> SyncNotices {
        SyncNotices(source: FeedSource(noticeFeeds, first: lostCommits.take().map { .storeLost(reason: $0) }))
    }

    func notify(_ notice: SyncNotice) { noticeFeeds.add(notice) }

    func end(_ error: ReelError) {
        isClosed = true
        dropLink()
        for stream in opened.values { step(stream, .closed) }
        showStatus()
        resources.end(error)
    }

    /// Stops the client because its store failed. Everything that it showed or sent after that could be wrong.
    func fail(_ error: ReelError) {
        guard failure == nil else { return }
        failure = error
        // A store that has failed is not changed any more.
        resources.erasesStore = false
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

    var pollTimer: (any TransportHandle)? {
        get { resources.pollTimer }
        _modify { yield &resources.pollTimer }
    }

    var answerTimer: (any TransportHandle)? {
        get { resources.answerTimer }
        _modify { yield &resources.answerTimer }
    }

    var noticeFeeds: Feeds<SyncNotice> { resources.noticeFeeds }

    var digestRequest: (any TransportHandle)? {
        get { resources.digestRequest }
        _modify { yield &resources.digestRequest }
    }

    var upkeepTimer: (any TransportHandle)? {
        get { resources.upkeepTimer }
        _modify { yield &resources.upkeepTimer }
    }

    /// The device's store; nil for a closed client.
    var store: DeviceStore? { resources.store }

    /// The readable content of the open streams.
    nonisolated var content: ClientContent { resources.content }
}
