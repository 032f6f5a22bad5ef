import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// One event loop's part of a gateway: its connections and its recent records. Batches of the tail enter here. They go
/// on to the publishes that wait for them, to the listeners, and to those who wait for a seq. On its loop only.
final class GatewayLoop {
    let loop: any HostLoop
    let context: GatewayContext
    let index: Int
    private(set) var rings: [Ring]
    /// Takes published events.
    private(set) lazy var publishing = PublishHandler(of: self)
    /// Delivers new events.
    private(set) lazy var fanOut = FanOut(of: self)
    /// Reads events before the head for all readers of this loop.
    private(set) lazy var reads = ReadScheduler(of: self)
    /// The requests that wait until a seq was read.
    private(set) lazy var waits = SeqWaiters(of: self)
    /// Reports refused requests to the operator.
    let requests: RequestWatch?
    /// Asks for the outcomes of events.
    let outcomes: OutcomeQuestions?
    /// Asks other nodes for old events of a stream.
    let snapshotEvents: (any EventIndex)?
    /// The advertised addresses of other gateways.
    private(set) var neighbours = Neighbours()
    /// Reads the bodies and messages that are too large for the loop.
    let largeInput = LargeInput()
    /// The open sockets by their number.
    private(set) var clients: [Int: SocketClient] = [:]
    /// This loop's part of the gauges that all loops share.
    private var gauges: LoopGauges
    private var lastTickMs: Int64
    /// True if the last tick skipped the clients because the loop had stood still.
    private var isPutOff = false
    /// True once the log has diverged: the loop serves nothing any more.
    private var isFenced = false
    /// Limits the log lines about failed reads and writes, of which clients get a public sentence only.
    private var logWarnings = LineLimiter(lines: 1, windowMs: 10_000)
    private var lastNumber = 0

    /// Creates the part on a loop.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - index: The index of the loop among those of the gateway.
    ///   - context: The context of the gateway.
    ///   - from: The first seq of each partition's ring.
    ///   - requests: Reports refused requests; nil: they are not reported.
    ///   - outcomes: Asks for the outcomes of events; nil: no node is asked.
    ///   - snapshotEvents: Asks snapshot nodes for old events; nil: all are read from the log.
    init(
        on loop: any HostLoop,
        index: Int,
        context: GatewayContext,
        from: [Seq],
        requests: RequestWatch? = nil,
        outcomes: OutcomeQuestions? = nil,
        snapshotEvents: (any EventIndex)? = nil
    ) {
        self.loop = loop
        self.index = index
        self.context = context
        self.requests = requests
        self.outcomes = outcomes
        self.snapshotEvents = snapshotEvents
        rings = from.map { Ring(from: $0, byteLimit: context.settings.ringBytes) }
        gauges = LoopGauges(context.meters)
        lastTickMs = loop.nowMs
        health.onDivergence(loop.bound { [weak self] error in self?.fence(error) })
    }

    var nowMs: Int64 { loop.nowMs }
    var health: SharedHealth { context.health }

    /// Returns a number for a connection or a request. It is never used again.
    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Connections

    /// Adds a connection.
    func opened(_ client: SocketClient) {
        clients[client.number] = client
        updateGauges()
    }

    /// Removes a connection that is gone, with its subscriptions. Its publishes still go to the log.
    func closed(_ client: SocketClient) {
        clients[client.number] = nil
        fanOut.removeAll(client)
        publishing.forget(client.number)
    }

    // MARK: The tail

    /// Called with the next batch of a partition.
    func received(_ batch: TailBatch) {
        guard !isFenced else { return }
        guard rings[batch.partition].append(batch) else {
            return diverged(ReelError(.internal, "a batch from \(batch.seqs.lowerBound) on came out of order"))
        }
        do throws(ReelError) {
            try publishing.read(batch)
        } catch {
            return diverged(error)
        }
        fanOut.deliver(batch)
        waits.advance(batch.partition)
    }

    /// Tells the other loops that the log has diverged, and stops serving on this loop.
    func diverged(_ error: ReelError) {
        health.diverged(error)
        fence(error.forClients)
    }

    /// Called when the log was trimmed before it was read. The partition continues at `first`, the first seq that is
    /// there.
    func skipped(_ partition: Int, to first: Seq) {
        fanOut.deliver(partition)
        rings[partition] = Ring(from: first, byteLimit: context.settings.ringBytes)
        fanOut.skipped(partition, to: first)
        publishing.failUnread(
            partition,
            ReelError(.logUnavailable, "the log was trimmed before it was read", retryMs: 0)
        )
        waits.advance(partition)
    }

    /// Called when a partition is not read any further.
    func stopped(_ partition: Int, _ error: ReelError) {
        fanOut.stopped(partition, error)
        waits.fail(partition, error)
        publishing.failUnread(partition, error)
    }

    /// Called when the log is not what was read before. All clients get the error, and the loop serves nothing any
    /// more.
    func fence(_ error: ReelError) {
        guard !isFenced else { return }
        isFenced = true
        fanOut.fail(error)
        publishing.fail(error)
        waits.fail(nil, error)
    }

    // MARK: The clock

    /// Does the work that is due by the clock. Called about once a second.
    func tick() {
        let nowMs = nowMs
        publishing.tick(nowMs: nowMs)
        health.backlog(ofLoop: index, is: Backlog(publishing.ledger, nowMs: nowMs))
        fanOut.tick(health.logState)
        context.limits.tick(nowMs: nowMs)
        // After a standstill the loop first handles the frames that arrived meanwhile, so that no client counts as
        // late.
        isPutOff = !isPutOff && nowMs - lastTickMs > Self.standstillMs
        lastTickMs = nowMs
        if !isPutOff { for client in clients.values { client.tick(nowMs: nowMs) } }
        nameNeighbours()
        countUnsent()
        for waiter in fanOut.waiters.all { waiter.tick(nowMs: nowMs) }
    }

    /// The time without a tick, in milliseconds, after which the loop counts as having stood still.
    private static let standstillMs: Int64 = 5_000

    /// Called about once a second with the advertised addresses of all other gateways.
    func heard(of others: Set<String>) { neighbours.look(others) }

    /// Sends the addresses of other gateways to the clients that have to hear of a change now.
    private func nameNeighbours() {
        var frame: WebSocketFrame?
        for client in clients.values where client.awaits(neighbours) {
            let news = frame ?? .text(ServerFrame(.nodes(neighbours.named)).encoded())
            frame = news
            client.hears(of: neighbours, by: news)
        }
    }

    /// Counts the bytes that wait for the clients.
    private func countUnsent() {
        var now = gauges.counts
        (now.unsentBytes, now.slowConnections) = (0, 0)
        for client in clients.values {
            let bytes = client.pendingBytes
            now.unsentBytes += bytes
            if bytes > context.settings.sendQueueBytes / 2 { now.slowConnections += 1 }
        }
        gauges.show(now)
    }

    /// Called when a connection, a subscription or a waiting request has come or gone.
    func updateGauges() {
        var now = gauges.counts
        now.connections = clients.count
        now.subscriptions = fanOut.subscriptions.count
        now.httpSubscribers = fanOut.requestCount
        gauges.show(now)
    }

    /// Writes a log line with the details of an error that clients do not get. The number of lines is limited.
    func warn(_ event: String, _ error: LogError) {
        guard error.publicMessage != error.message, let unsaid = logWarnings.admit(nowMs: nowMs) else { return }
        context.logger.warning(event, ["detail": error.message, "lines_left_out": "\(unsaid)"])
    }
}

@available(*, unavailable)
extension GatewayLoop: Sendable {}
