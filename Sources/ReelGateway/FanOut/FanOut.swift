import ReelCore
import ReelNet
import ReelNode

/// Delivers what the tail reads to the listeners of one loop: it pushes events to live subscriptions, and tells waiting
/// readers that there are more. On its loop only.
final class FanOut {
    private unowned let gateway: GatewayLoop
    private(set) var subscriptions: Subscriptions<SocketClient>
    private var proofs: HeadProofs<SocketClient>
    /// The HTTP requests and the subscriptions with outcomes that wait for new events.
    let waiters = StreamWaiters()
    /// The number of HTTP requests among the waiters.
    private(set) var requestCount = 0
    /// For each partition the batches that are not sent to the listeners yet.
    private var coalescers: [DeliveryCoalescer]
    /// For each partition the coalescer's timer; nil: no timer runs.
    private var gatherTimers: [(any HostTimer)?]
    /// The estimated load of sending each event separately.
    private var sendLoad = SendLoadEstimate()
    /// The timer of the turns in which clients are told of the heads; nil: no turns are under way.
    private var proveTimer: (any HostTimer)?

    init(of gateway: GatewayLoop) {
        self.gateway = gateway
        let (partitions, settings) = (gateway.context.partitions, gateway.context.settings)
        subscriptions = Subscriptions(frameLimit: settings.frameBytes)
        proofs = HeadProofs(partitions: partitions)
        let coalescer = DeliveryCoalescer(listenerMicros: settings.listenerMicros)
        coalescers = [DeliveryCoalescer](repeating: coalescer, count: partitions)
        gatherTimers = [(any HostTimer)?](repeating: nil, count: partitions)
    }

    private var context: GatewayContext { gateway.context }

    // MARK: Listeners

    /// Starts a subscription; see `Subscriptions.add`.
    func add(
        _ client: SocketClient,
        _ stream: StreamName,
        partition: Int,
        after: Seq,
        filter: EventFilter?,
        hasOutcomes: Bool
    ) -> Subscription<SocketClient> {
        stopWaiting(client, stream)
        let entry = subscriptions.add(
            client,
            stream,
            partition: partition,
            after: after,
            filter: filter,
            hasOutcomes: hasOutcomes
        )
        if hasOutcomes { _ = waiters.add(entry) }
        gateway.updateGauges()
        return entry
    }

    /// Ends a subscription of a client that wants it no longer.
    func remove(_ client: SocketClient, _ stream: StreamName) {
        stopWaiting(client, stream)
        _ = subscriptions.remove(client, stream)
        gateway.updateGauges()
    }

    /// Removes a client's subscription from the waiters, if it has one with outcomes.
    private func stopWaiting(_ client: SocketClient, _ stream: StreamName) {
        guard waiters.awaits(stream) else { return }
        if let entry = subscriptions.entry(client, stream), entry.hasOutcomes { _ = waiters.remove(entry) }
    }

    /// Ends all subscriptions of a client that is gone.
    func removeAll(_ client: SocketClient) {
        for entry in subscriptions.all(of: client) where entry.hasOutcomes { _ = waiters.remove(entry) }
        subscriptions.removeAll(client)
        gateway.updateGauges()
    }

    /// Ends a subscription that cannot be served any longer, and sends the client the error.
    func end(_ entry: Subscription<SocketClient>, _ error: ReelError) {
        remove(entry.client, entry.stream)
        entry.client.tell(gateway.failure(error, entry.stream), ref: nil)
    }

    /// Adds an HTTP request that waits for new events.
    func join(_ waiter: any StreamWaiter) {
        guard waiters.add(waiter) else { return }
        requestCount += 1
        gateway.updateGauges()
    }

    /// Removes an HTTP request that waits no longer.
    func leave(_ waiter: any StreamWaiter) {
        guard waiters.remove(waiter) else { return }
        requestCount -= 1
        gateway.updateGauges()
    }

    // MARK: The tail

    /// Called when the log was trimmed before it was read, and continues at `first`. Live subscriptions that have not
    /// received everything before it end with `truncated`.
    func skipped(_ partition: Int, to first: Seq) {
        for entry in subscriptions.all(in: partition) where entry.isLive && entry.proven < first - 1 {
            end(entry, ReelError(.truncated, "the log begins at \(first), \(entry.proven) was sent: take a snapshot"))
        }
        for waiter in waiters.all(in: partition) { waiter.moved() }
    }

    /// Called when a partition is not read any further. Its listeners get all events that were read, and then the
    /// error.
    func stopped(_ partition: Int, _ error: ReelError) {
        deliver(partition)
        for entry in subscriptions.all(in: partition) where entry.isLive { end(entry, error) }
        for waiter in waiters.all(in: partition) { waiter.moved() }
    }

    /// Called when the log is not what was read before. All listeners get the error.
    func fail(_ error: ReelError) {
        for partition in gateway.rings.indices {
            for entry in subscriptions.all(in: partition) { end(entry, error) }
        }
        for waiter in waiters.all { waiter.failed(error) }
    }

    /// Proves the heads to the clients. Called about once a second, with the state of the log.
    func tick(_ log: LogState) {
        proofs.log = log
        proveHeads()
    }

    /// Delivers a batch to all its listeners, now or together with later batches.
    func deliver(_ batch: TailBatch) {
        let listeners = subscriptions.listeners(to: batch)
        sendLoad.add(Double(listeners.all) * gateway.loop.writeMicros / 1_000, nowMs: gateway.nowMs)
        coalescers[batch.partition].add(batch, listeners: listeners.most, keepsDistance: sendLoad.isTooMuch)
        if isForNow(batch, listeners: listeners.most) {
            gateway.loop.afterFlush { [gateway] in gateway.fanOut.deliverIfDue(batch.partition) }
        } else {
            deliverIfDue(batch.partition)
        }
    }

    /// True if the batch is written to each listener directly, after the other writes of the round. Under load, or with
    /// several streams in the batch, one round may bring a client more than one frame. Then these frames go out in one
    /// write.
    private func isForNow(_ batch: TailBatch, listeners: Int) -> Bool {
        !sendLoad.isTooMuch && batch.streams.count == 1 && listeners >= Self.listenersAtOnce
    }

    /// The minimum number of listeners for direct writes. With fewer, a batch goes out with the round's other frames.
    private static let listenersAtOnce = 32

    /// Sends the gathered batches of a partition. Call it before clients are told of the head: they must first be told
    /// of everything before it.
    func deliver(_ partition: Int) {
        gatherTimers[partition]?.cancel()
        gatherTimers[partition] = nil
        guard let batch = coalescers[partition].take(nowMs: gateway.nowMs) else { return }
        let listeners = subscriptions.listeners(to: batch)
        let isForNow = isForNow(batch, listeners: listeners.most)
        gateway.loop.writing(toMost: isForNow ? listeners.all : 0) {
            let late = pushing(now: isForNow) { push in subscriptions.deliver(batch, send: push) }
            for entry in late { lags(entry) }
        }
        for waiter in waiters.all(awaiting: batch) { waiter.moved() }
    }

    /// Makes a subscription live that has caught up to the head.
    func becomeLive(_ entry: Subscription<SocketClient>, head: Seq) {
        let gathers = coalescers[entry.partition].dueMs != nil
        subscriptions.makeLive(entry)
        let all = subscriptions.all(of: entry.client)
        proofs.caughtUp(entry, among: all, head: head, gathers: gathers) { $0.send($1) }
    }

    /// Ends the subscription of a client that does not keep up.
    private func lags(_ entry: Subscription<SocketClient>) {
        context.meters.lagged.add()
        entry.client.send(.lagged(entry.stream, seq: entry.proven, head: gateway.rings[entry.partition].head), ref: nil)
        remove(entry.client, entry.stream)
    }

    /// Proves the heads of all partitions to the clients that have not been told of them. With many subscriptions it
    /// works in turns, one slot of clients at a time, so that other work does not wait for long.
    private func proveHeads() {
        let slots = Subscriptions<SocketClient>.slots
        guard subscriptions.count > Self.provenAtOnce else { return proveHeads(slots) }
        guard proveTimer == nil else { return }
        var slot = slots.lowerBound
        proveTimer = gateway.loop.every(Self.proveMs) { [gateway] in
            gateway.fanOut.proveHeads(slot..<slot + 1)
            slot += 1
            if slot == slots.upperBound { gateway.fanOut.endProving() }
        }
    }

    private func endProving() {
        proveTimer?.cancel()
        proveTimer = nil
    }

    /// The number of subscriptions above which heads are proven in turns.
    private static let provenAtOnce = 1_000
    /// Milliseconds between two turns. All turns together take less than the second after which the next heads are
    /// proven.
    private static let proveMs: Int64 = 30

    private func proveHeads(_ slots: Range<Int>) {
        for partition in gateway.rings.indices {
            deliver(partition)
            pushing(now: false) { push in
                let head = gateway.rings[partition].head
                proofs.tell(subscriptions, slots: slots, partition: partition, head: head, send: push)
            }
        }
    }

    /// Calls `body` with a function that pushes a frame to a client. Then adds all pushed frames to the meters at once,
    /// because the loops share their meters.
    private func pushing<R>(now: Bool, _ body: ((SocketClient, WebSocketFrame) -> Bool) -> R) -> R {
        var (frames, bytes) = (0, 0)
        let result = body { client, frame in
            guard client.push(frame, now: now) else { return false }
            frames += 1
            bytes += frame.bytes.count
            return true
        }
        context.meters.pushed(frames: frames, bytes: bytes)
        return result
    }

    private func deliverIfDue(_ partition: Int) {
        guard let dueMs = coalescers[partition].dueMs else { return }
        if dueMs <= gateway.nowMs { return deliver(partition) }
        guard gatherTimers[partition] == nil else { return }
        gatherTimers[partition] = gateway.loop.once(after: dueMs - gateway.nowMs) { [gateway] in
            gateway.fanOut.gathered(partition)
        }
    }

    private func gathered(_ partition: Int) {
        gatherTimers[partition] = nil
        deliverIfDue(partition)
    }
}

@available(*, unavailable)
extension FanOut: Sendable {}
