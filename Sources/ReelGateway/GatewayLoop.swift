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
    let turns: Turns
    private let pages: LoopPages
    /// What lies far back in a stream, on other nodes.
    var snapshotIndex: SnapshotIndex?
    /// Where clients reach other gateways, as far as those say so; looked up about once a second.
    var neighbours: [String] = []
    var subscriptions: Subscriptions<SocketClient>
    var ledger: PublishLedger
    var intake: EventIntake
    /// Open sockets by their number.
    var clients: [Int: SocketClient] = [:]
    /// HTTP requests that wait for what comes.
    var followers = Followers()
    /// For each partition what is still to be sent to those who listen, and what ends the timer of it.
    var gatherings: [Gathering]
    var gatherTimers: [(() -> Void)?]
    /// What it would take to send each event by itself.
    var sendingLoad = SendingLoad()
    /// What ends the turns in which clients are told how far was read.
    var proveTimer: (() -> Void)?
    /// HTTP publishes that wait for their outcome, by their number.
    var publishes: [Int: HTTPPublish] = [:]
    /// What was taken in this round and goes to the log at its end, by partition.
    var flights: [[Flight]]
    /// What this loop has added to the gauges: bytes that wait, and connections for which many do.
    private var unsent = (bytes: 0, connections: 0)
    private var lastTickMs: Int64
    private var isPutOff = false
    private var isAppending = false
    private var isFenced = false
    /// For each partition who waits for what the log says of its end; nil: it is not being asked.
    private var asking: [[(wait: PositionWait, then: (ReelError?) -> Void)]?]
    private var waits: [(wait: PositionWait, then: (ReelError?) -> Void)] = []
    private var endWaitTimer: (() -> Void)?
    private var lastNumber = 0

    /// A loop whose rings begin at these seqs.
    init(on loop: any HostLoop, index: Int, share: GatewayShare, from: [Seq]) {
        self.loop = loop
        self.index = index
        self.share = share
        let settings = share.settings
        turns = Turns(on: loop)
        pages = LoopPages(on: loop, turns: turns, share: share)
        rings = from.map { Ring(from: $0, byteLimit: settings.ringBytes) }
        subscriptions = Subscriptions(partitions: share.partitions, frameLimit: settings.frameBytes)
        let gathering = Gathering(listenerMicros: settings.listenerMicros)
        gatherings = [Gathering](repeating: gathering, count: share.partitions)
        gatherTimers = [(() -> Void)?](repeating: nil, count: share.partitions)
        ledger = PublishLedger(partitions: share.partitions, settings)
        intake = EventIntake(limit: settings.eventBytes)
        lastTickMs = loop.nowMs
        flights = [[Flight]](repeating: [], count: share.partitions)
        asking = [[(wait: PositionWait, then: (ReelError?) -> Void)]?](repeating: nil, count: share.partitions)
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
        if waits.contains(where: { $0.wait.partition == batch.partition && $0.wait.seq <= batch.last }) { tickWaits() }
    }

    private func readBack(_ batch: TailBatch) -> [PublishLedger.Settled] {
        var done: [Flight] = []
        // Most often the next event is of the same stream and site.
        var last: (stream: Int, lane: Lane)?
        for index in batch.kinds.indices {
            guard case .event(let stream, let site, let op) = batch.kinds[index] else { continue }
            if last?.stream != stream || last?.lane.site != site {
                last = (stream, Lane(stream: batch.streams[stream], site: site))
            }
            guard let (_, lane) = last else { continue }
            let item = batch[index]
            let flight = batch.withValue(item) { ledger.readBack(lane, op, seq: item.entry.seq, value: $0) }
            if let flight { done.append(flight) }
        }
        return ledger.finish(done)
    }

    /// The other loops hear of it; this one serves nothing more from now on.
    private func diverged(_ error: ReelError) {
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
        for follower in followers.all(in: partition) { follower.moved() }
        giveUp(partition, ReelError(.logUnavailable, "the log was trimmed before it was read", retryMs: 0))
    }

    /// Nothing more is read of a partition: those who listen are told once they have all that there is.
    func stopped(_ partition: Int, _ error: ReelError) {
        deliver(partition)
        for entry in subscriptions.all(in: partition) where entry.isLive { end(entry, error) }
        for follower in followers.all(in: partition) { follower.moved() }
        let waiting = waits.filter { $0.wait.partition == partition }
        waits.removeAll { $0.wait.partition == partition }
        for (_, then) in waiting { then(error) }
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
        for follower in followers.all { follower.failed(error) }
        let waiting = waits
        waits = []
        for (_, then) in waiting { then(error) }
    }

    /// Ends a subscription that cannot be served any longer.
    func end(_ entry: Subscription<SocketClient>, _ error: ReelError) {
        if subscriptions.remove(entry.client, entry.stream) { share.meters.subscriptions.add(-1) }
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
        share.rate.withLock { $0.tick(nowMs: nowMs) }
        // Who stood still hears first what has come meanwhile: nobody is late for that.
        isPutOff = !isPutOff && nowMs - lastTickMs > Self.standstillMs
        lastTickMs = nowMs
        if !isPutOff { for client in clients.values { client.tick(nowMs: nowMs) } }
        countUnsent()
        for publish in publishes.values { publish.tick(nowMs: nowMs) }
        for follower in followers.all { follower.tick(nowMs: nowMs) }
    }

    /// Adds to the gauges of all loops what has changed on this one.
    private func countUnsent() {
        var now = (bytes: 0, connections: 0)
        for client in clients.values {
            let bytes = client.pendingBytes
            now.bytes += bytes
            if bytes > share.settings.unsentBytes / 2 { now.connections += 1 }
        }
        share.meters.unsentBytes.add(now.bytes - unsent.bytes)
        share.meters.slowConnections.add(now.connections - unsent.connections)
        unsent = now
    }

    /// Behind so long without a tick the loop stood still.
    private static let standstillMs: Int64 = 5_000

    /// An HTTP request waits for what comes.
    func join(_ follower: any Follower) {
        if followers.add(follower) { share.meters.followers.add(1) }
    }

    /// It waits no longer.
    func leave(_ follower: any Follower) {
        if followers.remove(follower) { share.meters.followers.add(-1) }
    }

    // MARK: Positions

    /// Calls back without an error once this loop has read the seq; or with the reason why that will not be.
    func reach(_ seq: Seq, of partition: Int, then: @escaping (ReelError?) -> Void) {
        guard seq > rings[partition].head else { return then(nil) }
        if let error = share.stop(of: partition) { return then(error) }
        let settings = share.settings
        let wait = PositionWait(
            partition: partition,
            seq: seq,
            behindMs: settings.behindMs,
            aheadMs: settings.aheadMs
        )
        ask(wait, then)
    }

    /// Asks the log where it ends. Who wants to know that while it is asked already is too late for that answer: for
    /// all of those it is asked once more.
    private func ask(_ wait: PositionWait, _ then: @escaping (ReelError?) -> Void) {
        guard asking[wait.partition]?.append((wait, then)) == nil else { return }
        asking[wait.partition] = []
        ask([(wait, then)], about: wait.partition)
    }

    private func ask(_ first: [(wait: PositionWait, then: (ReelError?) -> Void)], about partition: Int) {
        let log = share.log
        loop.offload {
            try? log.bounds(partition)
        } then: { [self] bounds in
            if let bounds { share.bounds(partition, are: bounds) }
            for (wait, then) in first { goOn(wait, bounds, then) }
            let next = asking[partition] ?? []
            asking[partition] = next.isEmpty ? nil : []
            if !next.isEmpty { ask(next, about: partition) }
        }
    }

    private func goOn(_ wait: PositionWait, _ bounds: LogBounds?, _ then: @escaping (ReelError?) -> Void) {
        // What ended the log, or stopped the partition, while the log was asked has not met this wait.
        if let divergence = share.divergence { return then(divergence) }
        if wait.seq <= rings[wait.partition].head { return then(nil) }
        if let error = share.stop(of: wait.partition) { return then(error) }
        var wait = wait
        step(wait.logEnds(at: bounds?.last, nowMs: nowMs), wait, then)
    }

    private func step(_ step: PositionWait.Step, _ wait: PositionWait, _ then: @escaping (ReelError?) -> Void) {
        switch step {
        case .ask: ask(wait, then)
        case .reached: then(nil)
        case .refuse(let error): then(error)
        case .wait:
            waits.append((wait, then))
            if endWaitTimer == nil { endWaitTimer = loop.every(50) { [self] in tickWaits() } }
        }
    }

    private func tickWaits() {
        let waiting = waits
        waits = []
        for (wait, then) in waiting {
            var wait = wait
            let next = wait.tick(head: rings[wait.partition].head, nowMs: nowMs)
            step(next, wait, then)
        }
        if waits.isEmpty {
            endWaitTimer?()
            endWaitTimer = nil
        }
    }

    // MARK: Reading

    /// Reads events of a stream from `from` on, up to `to` at most: from the ring, a snapshot node's index, or the log.
    /// The chunk may end earlier than asked; it always goes on by at least one seq. Of a log that has diverged nothing
    /// is read. `mayBegin` is asked before the log is read for this, or a node asked; false, and nothing is done, if it
    /// may not. Who is not ready once it is there gets a chunk that proves nothing.
    @discardableResult
    func read(
        _ stream: StreamName,
        through filter: EventFilter? = nil,
        partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        events: Int = .max,
        for access: Access? = nil,
        mayBegin: () -> Bool = { true },
        isReady: @escaping () -> Bool = { true },
        then: @escaping (Result<EventsChunk, LogError>) -> Void
    ) -> Bool {
        if let divergence {
            then(.failure(divergence))
            return true
        }
        if let chunk = rings[partition].chunk(
            of: stream,
            through: filter,
            from: from,
            to: to,
            bytes: bytes,
            events: events
        ) {
            share.meters.ringEvents.add(chunk.count)
            then(.success(chunk))
            return true
        }
        let query = LogQuery(
            stream: stream,
            filter: filter,
            partition: partition,
            from: from,
            to: min(to, rings[partition].first - 1),
            bytes: bytes,
            events: events
        )
        let isThere = share.pages.page(at: from, of: partition) != nil
        guard !isThere, let snapshotIndex, let node = snapshotIndex.node(for: query) else {
            return readPage(query, mayBegin: mayBegin, isReady: isReady, then: then)
        }
        guard mayBegin() else { return false }
        snapshotIndex.ask(node, for: query, authorization: access?.authorization) { [self] chunk in
            if let divergence { return then(.failure(divergence)) }
            guard let chunk else {
                // Its place is taken already.
                _ = readPage(query, mayBegin: { true }, isReady: isReady, then: then)
                return
            }
            share.meters.snapshotEvents.add(chunk.count)
            then(.success(chunk))
        }
        return true
    }

    private func readPage(
        _ query: LogQuery,
        mayBegin: () -> Bool,
        isReady: @escaping () -> Bool,
        then: @escaping (Result<EventsChunk, LogError>) -> Void
    ) -> Bool {
        pages.read(query, mayBegin: mayBegin, isReady: isReady) { [self] result in
            if let divergence { return then(.failure(divergence)) }
            if case .success(let chunk) = result { share.meters.logEvents.add(chunk.count) }
            then(result)
        }
    }

    /// Why nothing is read any more, also for who asked before: the log is not what was read before.
    private var divergence: LogError? {
        share.divergence.map { LogError($0.code, $0.message) }
    }

    // MARK: Appending

    /// Hands what was taken to the log at the end of this round.
    func append(_ taken: [Flight], to partition: Int) {
        flights[partition] += taken
        guard !isAppending, !taken.isEmpty else { return }
        isAppending = true
        loop.atRoundEnd { [self] in
            isAppending = false
            for partition in flights.indices where !flights[partition].isEmpty { flush(partition) }
        }
    }

    private func flush(_ partition: Int) {
        let taken = flights[partition]
        flights[partition] = []
        let ring = rings[partition]
        let startedMs = nowMs
        for flight in taken { flight.headWhenHandedOver = ring.head }
        var (stream, key) = (taken[0].lane.stream, taken[0].lane.stream.key)
        let records = taken.map { flight in
            if flight.lane.stream != stream { (stream, key) = (flight.lane.stream, flight.lane.stream.key) }
            return LogAppend(key: key, value: flight.value, witness: ring.witness)
        }
        let done: @Sendable (Result<[Seq], LogError>) -> Void = loop.bound { [self] result in
            share.meters.appends.record(.milliseconds(nowMs - startedMs))
            reported(taken, partition, result)
        }
        share.log.append(records, to: partition, done: done)
    }

    private func reported(_ taken: [Flight], _ partition: Int, _ result: Result<[Seq], LogError>) {
        switch result {
        case .success(let seqs):
            share.appended()
            do throws(ReelError) {
                answer(try ledger.reported(taken, at: seqs, head: rings[partition].head, nowMs: nowMs))
            } catch {
                diverged(error)
            }
        case .failure(let error):
            if ![.tooLarge, .overloaded].contains(error.code) { share.appending(fails: error, nowMs: nowMs) }
            for flight in taken { answer(ledger.failed([flight], reason(error, flight), nowMs: nowMs)) }
        }
    }
}

extension GatewayLoop {
    /// What the author is told of an event that went to the log with others, where the log failed to take them all.
    private func reason(_ error: LogError, _ flight: Flight) -> ReelError {
        switch error.code {
        // It is the gateway that lacks the right, no client.
        case .logUnavailable, .forbidden: ReelError(.logUnavailable, error.message, retryMs: 1_000)
        case .overloaded: ReelError(.overloaded, error.message, retryMs: 200)
        // The log takes less than it did when they were taken. Those that are not too large need only come again.
        case .tooLarge:
            refusal(ofBytes: flight.value.count, in: flight.lane.stream)
                ?? ReelError(.logUnavailable, error.message, retryMs: 0)
        default: ReelError(error.code, error.message)
        }
    }
}

@available(*, unavailable)
extension GatewayLoop: Sendable {}
