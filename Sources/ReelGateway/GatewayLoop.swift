import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization

/// One event loop's part of a gateway: its connections, what they listen to, what they published, and the recent
/// records. Everything here is used on its loop only.
final class GatewayLoop {
    let loop: any HostLoop
    let share: GatewayShare
    let index: Int
    var rings: [Ring]
    /// Answers of what was read, to those who catch up and fetch.
    let turns: FairQueue
    let pages: PageReader
    /// What lies far back in a stream, on other nodes.
    var snapshotEventsClient: SnapshotEventsClient?
    /// Tells the operator who was refused.
    var requests: RequestWatch?
    /// Asks what became of events.
    var outcomes: OutcomeQuestions?
    /// Where clients reach other gateways, as far as those say so; looked up about once a second.
    var neighbours = Neighbours()
    var subscriptions: Subscriptions<SocketClient>
    var ledger: PublishLedger
    var intake: EventIntake
    /// The bodies and messages that are too large to be read on the loop.
    let largeInput = LargeInput()
    /// Open sockets by their number.
    var clients: [Int: SocketClient] = [:]
    /// HTTP requests that wait for what comes.
    var streamWaiters = StreamWaiters()
    /// For each partition what is still to be sent to those who listen, and what ends the timer of it.
    var coalescers: [DeliveryCoalescer]
    var gatherTimers: [(() -> Void)?]
    /// What it would take to send each event by itself.
    var sendLoad = SendLoadEstimate()
    /// What ends the turns in which clients are told how far was read.
    var proveTimer: (() -> Void)?
    /// HTTP publishes that wait for their outcome, by their number.
    var publishes: [Int: HTTPPublish] = [:]
    /// What was taken in this round and goes to the log at its end, by partition.
    var pendingRecords: [[PendingRecord]]
    var isAppending = false
    /// What this loop has added to the gauges: bytes that wait, and connections for which many do.
    private var unsent = (bytes: 0, connections: 0)
    private var lastTickMs: Int64
    private var isPutOff = false
    private var isFenced = false
    /// Limits the log lines about failed reads and writes, of which clients get a public sentence only.
    var logWarnings = LineLimiter(lines: 1, windowMs: 10_000)
    /// Who waits until a seq was read.
    var seqWaiters: SeqWaiters
    private var lastNumber = 0

    /// A loop whose rings begin at these seqs.
    init(on loop: any HostLoop, index: Int, share: GatewayShare, from: [Seq]) {
        self.loop = loop
        self.index = index
        self.share = share
        let settings = share.settings
        turns = FairQueue(on: loop)
        pages = PageReader(on: loop, turns: turns, share: share)
        rings = from.map { Ring(from: $0, byteLimit: settings.ringBytes) }
        subscriptions = Subscriptions(partitions: share.partitions, frameLimit: settings.frameBytes)
        let gathering = DeliveryCoalescer(listenerMicros: settings.listenerMicros)
        coalescers = [DeliveryCoalescer](repeating: gathering, count: share.partitions)
        gatherTimers = [(() -> Void)?](repeating: nil, count: share.partitions)
        ledger = PublishLedger(partitions: share.partitions, settings)
        intake = EventIntake(limit: settings.eventBytes)
        lastTickMs = loop.nowMs
        pendingRecords = [[PendingRecord]](repeating: [], count: share.partitions)
        seqWaiters = SeqWaiters(partitions: share.partitions)
        share.onDivergence(loop.bound { [weak self] error in self?.fence(error) })
    }

    var nowMs: Int64 { loop.nowMs }

    /// A number for a connection or a request, never used again.
    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: The tail

    /// The next batch of a partition.
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
        // Most often the next event is of the same stream and site.
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

    /// The other loops hear of it; this one serves nothing more from now on.
    func diverged(_ error: ReelError) {
        share.diverged(error)
        fence(error)
    }

    /// What this loop still waits for in a partition will not be read back: the log was trimmed, or its epoch ended.
    private func giveUp(_ partition: Int, _ error: ReelError) {
        answer(ledger.failed(ledger.unread(partition), error, nowMs: nowMs))
    }

    /// The log was trimmed before it was read: the partition goes on at the first seq that is there. Who has not come
    /// so far is told.
    func skipped(_ partition: Int, to first: Seq) {
        deliver(partition)
        rings[partition] = Ring(from: first, byteLimit: share.settings.ringBytes)
        for entry in subscriptions.all(in: partition) where entry.isLive && entry.proven < first - 1 {
            end(entry, ReelError(.truncated, "the log begins at \(first), \(entry.proven) was sent: take a snapshot"))
        }
        for follower in streamWaiters.all(in: partition) { follower.moved() }
        giveUp(partition, ReelError(.logUnavailable, "the log was trimmed before it was read", retryMs: 0))
        endWaits(of: partition)
    }

    /// Nothing more is read of a partition: those who listen are told once they have all that there is.
    func stopped(_ partition: Int, _ error: ReelError) {
        deliver(partition)
        for entry in subscriptions.all(in: partition) where entry.isLive { end(entry, error) }
        for follower in streamWaiters.all(in: partition) { follower.moved() }
        for waiter in seqWaiters.removeAll(of: partition) { waiter.then(error) }
        giveUp(partition, error)
    }

    /// The log is not what was read before: everybody is told, and nothing is served any more.
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

    /// Ends a subscription that cannot be served any longer.
    func end(_ entry: Subscription<SocketClient>, _ error: ReelError) {
        if subscriptions.remove(entry.client, entry.stream) { entry.client.hasLeft() }
        entry.client.tell(failure(error, entry.stream), ref: nil)
    }

    /// About once a second: what is due by the clock.
    func tick() {
        let nowMs = nowMs
        answer(ledger.giveUpUnseen(nowMs: nowMs))
        ledger.nacked.forgetExpired(nowMs: nowMs)
        share.backlog(ofLoop: index, is: Backlog(ledger, nowMs: nowMs))
        subscriptions.log = share.logState
        proveHeads()
        share.publishLimits.withLock { $0.tick(nowMs: nowMs) }
        // Who stood still hears first what has come meanwhile: nobody is late for that.
        isPutOff = !isPutOff && nowMs - lastTickMs > Self.standstillMs
        lastTickMs = nowMs
        if !isPutOff { for client in clients.values { client.tick(nowMs: nowMs) } }
        nameNeighbours()
        countUnsent()
        for publish in publishes.values { publish.tick(nowMs: nowMs) }
        for follower in streamWaiters.all { follower.tick(nowMs: nowMs) }
    }

    /// Tells those clients of the other gateways that have heard of others, and whose moment it is.
    private func nameNeighbours() {
        var frame: WebSocketFrame?
        for client in clients.values where client.awaits(neighbours) {
            let news = frame ?? .text(ServerFrame(.nodes(neighbours.named)).encoded())
            frame = news
            client.hears(of: neighbours, by: news)
        }
    }

    /// Adds to the gauges of all loops what has changed on this one.
    private func countUnsent() {
        var now = (bytes: 0, connections: 0)
        for client in clients.values {
            let bytes = client.pendingBytes
            now.bytes += bytes
            if bytes > share.settings.sendQueueBytes / 2 { now.connections += 1 }
        }
        share.meters.sendQueueBytes.add(now.bytes - unsent.bytes)
        share.meters.slowConnections.add(now.connections - unsent.connections)
        unsent = now
    }

    /// Behind so long without a tick the loop stood still.
    private static let standstillMs: Int64 = 5_000

    /// An HTTP request waits for what comes.
    func join(_ follower: any StreamWaiter) {
        if streamWaiters.add(follower) { share.meters.streamWaiters.add(1) }
    }

    /// It waits no longer.
    func leave(_ follower: any StreamWaiter) {
        if streamWaiters.remove(follower) { share.meters.streamWaiters.add(-1) }
    }
}

@available(*, unavailable)
extension GatewayLoop: Sendable {}
