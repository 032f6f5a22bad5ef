import ReelCore
import ReelNet
import ReelNode

// Delivering the tail's batches to listeners.
extension GatewayLoop {
    /// Delivers a batch to all its listeners, now or together with later batches.
    func fanOut(_ batch: TailBatch) {
        let listeners = subscriptions.listeners(to: batch)
        sendLoad.add(Double(listeners.all) * loop.writeMicros / 1_000, nowMs: nowMs)
        coalescers[batch.partition].add(batch, listeners: listeners.most, keepsDistance: sendLoad.isTooMuch)
        if isForNow(batch, listeners: listeners.most) {
            loop.afterFlush { [self] in deliverIfDue(batch.partition) }
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
        guard let batch = coalescers[partition].take(nowMs: nowMs) else { return }
        let listeners = subscriptions.listeners(to: batch)
        let isForNow = isForNow(batch, listeners: listeners.most)
        loop.writing(toMost: isForNow ? listeners.all : 0) {
            pushing(now: isForNow) { push in subscriptions.deliver(batch, send: push, lagged: lags) }
        }
        for follower in streamWaiters.all(awaiting: batch) { follower.moved() }
    }

    /// Makes a subscription live that has caught up to the head.
    func becomeLive(_ entry: Subscription<SocketClient>, head: Seq) {
        let gathers = coalescers[entry.partition].dueMs != nil
        subscriptions.becameLive(entry, head: head, gathers: gathers) { $0.send($1) }
    }

    /// Called when a client does not keep up and its subscription has ended.
    private func lags(_ entry: Subscription<SocketClient>) {
        context.meters.lagged.add()
        entry.client.send(.lagged(entry.stream, seq: entry.proven, head: rings[entry.partition].head), ref: nil)
    }

    /// Proves the heads of all partitions to the clients that have not been told of them. With many subscriptions it
    /// works in turns, one slot of clients at a time, so that other work does not wait for long.
    func proveHeads() {
        let slots = Subscriptions<SocketClient>.slots
        guard subscriptions.count > Self.provenAtOnce else { return proveHeads(slots) }
        guard proveTimer == nil else { return }
        var slot = slots.lowerBound
        proveTimer = loop.every(Self.proveMs) { [self] in
            proveHeads(slot..<slot + 1)
            slot += 1
            guard slot == slots.upperBound else { return }
            proveTimer?.cancel()
            proveTimer = nil
        }
    }

    /// The number of subscriptions above which heads are proven in turns.
    private static let provenAtOnce = 1_000
    /// Milliseconds between two turns. All turns together take less than the second after which the next heads are
    /// proven.
    private static let proveMs: Int64 = 30

    private func proveHeads(_ slots: Range<Int>) {
        for partition in rings.indices {
            deliver(partition)
            pushing(now: false) { push in
                subscriptions.tick(slots: slots, partition: partition, head: rings[partition].head, send: push)
            }
        }
    }

    /// Calls `body` with a function that pushes a frame to a client. Then adds all pushed frames to the meters at once,
    /// because the loops share their meters.
    private func pushing(now: Bool, _ body: ((SocketClient, WebSocketFrame) -> Bool) -> Void) {
        var (frames, bytes) = (0, 0)
        body { client, frame in
            guard client.push(frame, now: now) else { return false }
            frames += 1
            bytes += frame.bytes.count
            return true
        }
        context.meters.pushed(frames: frames, bytes: bytes)
    }

    private func deliverIfDue(_ partition: Int) {
        guard let dueMs = coalescers[partition].dueMs else { return }
        if dueMs <= nowMs { return deliver(partition) }
        guard gatherTimers[partition] == nil else { return }
        gatherTimers[partition] = loop.once(after: dueMs - nowMs) { [self] in
            gatherTimers[partition] = nil
            deliverIfDue(partition)
        }
    }
}
