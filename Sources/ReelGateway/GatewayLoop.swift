import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization

/// One event loop's part of a gateway: its connections, subscriptions, pending publishes and recent records. On its
/// loop only.
final class GatewayLoop {
    let loop: any HostLoop
    let context: GatewayContext
    let index: Int
    private(set) var rings: [Ring]
    /// Reads events before the head for all readers of this loop.
    private(set) lazy var reads = ReadScheduler(of: self)
    /// Reports refused requests to the operator.
    var requests: RequestWatch?
    /// Asks for the outcomes of events.
    var outcomes: OutcomeQuestions?
    /// The advertised addresses of other gateways; updated about once a second.
    var neighbours = Neighbours()
    var subscriptions: Subscriptions<SocketClient>
    var ledger: PublishLedger
    var intake: EventIntake
    /// Reads the bodies and messages that are too large for the loop.
    let largeInput = LargeInput()
    /// The open sockets by their number.
    private(set) var clients: [Int: SocketClient] = [:]
    /// The HTTP requests and the subscriptions with outcomes that wait for new events.
    var streamWaiters = StreamWaiters()
    /// For each partition the batches that are not sent to the listeners yet.
    var coalescers: [DeliveryCoalescer]
    /// For each partition the coalescer's timer; nil: no timer runs.
    var gatherTimers: [(any HostTimer)?]
    /// The estimated load of sending each event separately.
    var sendLoad = SendLoadEstimate()
    /// The timer of the turns in which clients are told of the heads; nil: no turns are under way.
    var proveTimer: (any HostTimer)?
    /// The HTTP publishes that wait for their outcome, by their number.
    private(set) var publishes: [Int: HTTPPublish] = [:]
    /// For each partition the records that were accepted in this round. They go to the log at the end of the round.
    var pendingRecords: [[PendingRecord]]
    var isAppending = false
    /// This loop's part of two gauges: unsent bytes, and connections with many of them.
    private var unsent = (bytes: 0, connections: 0)
    private var lastTickMs: Int64
    /// True if the last tick skipped the clients because the loop had stood still.
    private var isPutOff = false
    /// True once the log has diverged: the loop serves nothing any more.
    private var isFenced = false
    /// Limits the log lines about failed reads and writes, of which clients get a public sentence only.
    var logWarnings = LineLimiter(lines: 1, windowMs: 10_000)
    /// The requests that wait until a seq was read.
    var seqWaiters: SeqWaiters
    private var lastNumber = 0

    /// Creates the part on a loop. `from` has the first seq of each partition's ring.
    init(on loop: any HostLoop, index: Int, context: GatewayContext, from: [Seq]) {
        self.loop = loop
        self.index = index
        self.context = context
        let settings = context.settings
        rings = from.map { Ring(from: $0, byteLimit: settings.ringBytes) }
        subscriptions = Subscriptions(partitions: context.partitions, frameLimit: settings.frameBytes)
        let gathering = DeliveryCoalescer(listenerMicros: settings.listenerMicros)
        coalescers = [DeliveryCoalescer](repeating: gathering, count: context.partitions)
        gatherTimers = [(any HostTimer)?](repeating: nil, count: context.partitions)
        ledger = PublishLedger(partitions: context.partitions, settings)
        intake = EventIntake(limit: settings.eventBytes)
        lastTickMs = loop.nowMs
        pendingRecords = [[PendingRecord]](repeating: [], count: context.partitions)
        seqWaiters = SeqWaiters(partitions: context.partitions)
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
        context.meters.connections.add(1)
    }

    /// Removes a connection that is gone, with its subscriptions. Its publishes still go to the log.
    func closed(_ client: SocketClient) {
        clients[client.number] = nil
        context.meters.connections.add(-1)
        subscriptions.removeAll(client)
        ledger.forget(client.number)
    }

    /// Adds an HTTP publish that waits for its outcome.
    func add(_ publish: HTTPPublish) { publishes[publish.number] = publish }

    /// Removes an HTTP publish that is answered. Its events still go to the log.
    func remove(_ publish: HTTPPublish) {
        publishes[publish.number] = nil
        ledger.forget(publish.number)
    }

    // MARK: The tail

    /// Called with the next batch of a partition.
    func received(_ batch: TailBatch) {
        guard !isFenced else { return }
        guard rings[batch.partition].append(batch) else {
            return diverged(ReelError(.internal, "a batch from \(batch.seqs.lowerBound) on came out of order"))
        }
        var settled = ledger.isIdle ? [] : readBack(batch)
        if let end = batch.end {
            settled += ledger.failed(ledger.unread(batch.partition), .ended(end.next), nowMs: nowMs)
        }
        do throws(ReelError) {
            try ledger.read(batch.partition, to: batch.last)
        } catch {
            for index in settled.indices { settled[index].answer = .nacked(error) }
            answer(settled)
            return diverged(error)
        }
        answer(settled)
        fanOut(batch)
        endWaits(of: batch.partition)
    }

    private func readBack(_ batch: TailBatch) -> [PublishLedger.Resolution] {
        var done: [PendingRecord] = []
        // The next event most often has the same stream and site.
        var last: (stream: Int, lane: PublisherKey)?
        for index in batch.kinds.indices {
            guard case .event(let stream, let site, let op) = batch.kinds[index] else { continue }
            if last?.stream != stream || last?.lane.site != site {
                last = (stream, PublisherKey(stream: batch.streams[stream], site: site))
            }
            guard let (_, lane) = last else { continue }
            let item = batch[index]
            let flight = batch.withValue(item) { ledger.readBack(lane, op, seq: item.entry.seq, value: $0) }
            if let flight { done.append(flight) }
        }
        return ledger.finish(done)
    }

    /// Tells the other loops that the log has diverged, and stops serving on this loop.
    func diverged(_ error: ReelError) {
        health.diverged(error)
        fence(error)
    }

    /// Fails the pending events of a partition that will not be read back: the log was trimmed, or reading has stopped.
    private func giveUp(_ partition: Int, _ error: ReelError) {
        answer(ledger.failed(ledger.unread(partition), error, nowMs: nowMs))
    }

    /// Called when the log was trimmed before it was read. The partition continues at `first`, the first seq that is
    /// there. Live subscriptions that have not received everything before it end with `truncated`.
    func skipped(_ partition: Int, to first: Seq) {
        deliver(partition)
        rings[partition] = Ring(from: first, byteLimit: context.settings.ringBytes)
        for entry in subscriptions.all(in: partition) where entry.isLive && entry.proven < first - 1 {
            end(entry, ReelError(.truncated, "the log begins at \(first), \(entry.proven) was sent: take a snapshot"))
        }
        for follower in streamWaiters.all(in: partition) { follower.moved() }
        giveUp(partition, ReelError(.logUnavailable, "the log was trimmed before it was read", retryMs: 0))
        endWaits(of: partition)
    }

    /// Called when a partition is not read any further. Its listeners get all events that were read, and then the
    /// error.
    func stopped(_ partition: Int, _ error: ReelError) {
        deliver(partition)
        for entry in subscriptions.all(in: partition) where entry.isLive { end(entry, error) }
        for follower in streamWaiters.all(in: partition) { follower.moved() }
        for waiter in seqWaiters.removeAll(of: partition) { waiter.then(error) }
        giveUp(partition, error)
    }

    /// Called when the log is not what was read before. All clients get the error, and the loop serves nothing any
    /// more.
    func fence(_ error: ReelError) {
        guard !isFenced else { return }
        isFenced = true
        for partition in rings.indices {
            for entry in subscriptions.all(in: partition) { end(entry, error) }
            answer(ledger.failed(ledger.inFlight(partition), error, nowMs: nowMs))
        }
        for follower in streamWaiters.all { follower.failed(error) }
        for waiter in seqWaiters.removeAll() { waiter.then(error) }
    }

    /// Ends a subscription that cannot be served any longer, and sends the client the error.
    func end(_ entry: Subscription<SocketClient>, _ error: ReelError) {
        _ = subscriptions.remove(entry.client, entry.stream)
        entry.client.tell(failure(error, entry.stream), ref: nil)
    }

    /// Does the work that is due by the clock. Called about once a second.
    func tick() {
        let nowMs = nowMs
        answer(ledger.giveUpUnseen(nowMs: nowMs))
        ledger.nacked.forgetExpired(nowMs: nowMs)
        health.backlog(ofLoop: index, is: Backlog(ledger, nowMs: nowMs))
        subscriptions.log = health.logState
        proveHeads()
        context.limits.publishLimits.withLock { $0.tick(nowMs: nowMs) }
        // After a standstill the loop first handles the frames that arrived meanwhile, so that no client counts as
        // late.
        isPutOff = !isPutOff && nowMs - lastTickMs > Self.standstillMs
        lastTickMs = nowMs
        if !isPutOff { for client in clients.values { client.tick(nowMs: nowMs) } }
        nameNeighbours()
        countUnsent()
        for publish in publishes.values { publish.tick(nowMs: nowMs) }
        for follower in streamWaiters.all { follower.tick(nowMs: nowMs) }
    }

    /// Sends the addresses of other gateways to the clients that have to hear of a change now.
    private func nameNeighbours() {
        var frame: WebSocketFrame?
        for client in clients.values where client.awaits(neighbours) {
            let news = frame ?? .text(ServerFrame(.nodes(neighbours.named)).encoded())
            frame = news
            client.hears(of: neighbours, by: news)
        }
    }

    /// Updates the shared gauges by what has changed on this loop.
    private func countUnsent() {
        var now = (bytes: 0, connections: 0)
        for client in clients.values {
            let bytes = client.pendingBytes
            now.bytes += bytes
            if bytes > context.settings.sendQueueBytes / 2 { now.connections += 1 }
        }
        context.meters.sendQueueBytes.add(now.bytes - unsent.bytes)
        context.meters.slowConnections.add(now.connections - unsent.connections)
        unsent = now
    }

    /// The time without a tick, in milliseconds, after which the loop counts as having stood still.
    private static let standstillMs: Int64 = 5_000

    /// Adds an HTTP request that waits for new events.
    func join(_ follower: any StreamWaiter) {
        if streamWaiters.add(follower) { context.meters.streamWaiters.add(1) }
    }

    /// Removes an HTTP request that waits no longer.
    func leave(_ follower: any StreamWaiter) {
        if streamWaiters.remove(follower) { context.meters.streamWaiters.add(-1) }
    }
}

@available(*, unavailable)
extension GatewayLoop: Sendable {}
