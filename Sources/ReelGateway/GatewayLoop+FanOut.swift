import ReelCore
import ReelNet
import ReelNode

// From the tail to those who listen.
extension GatewayLoop {
    /// A batch is to go to all who listen, now or with what comes next.
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

    /// Whether it is written to each as it is pushed, behind the round's other writes. Under load, and where it brings
    /// several streams, one round may bring a client more than one frame: one write.
    private func isForNow(_ batch: TailBatch, listeners: Int) -> Bool {
        !sendLoad.isTooMuch && batch.streams.count == 1 && listeners >= Self.listenersAtOnce
    }

    /// To fewer it goes with what else the round brings them.
    private static let listenersAtOnce = 32

    /// Sends what has gathered: whoever is told about the head has to be told of what lies before it first.
    func deliver(_ partition: Int) {
        gatherTimers[partition]?()
        gatherTimers[partition] = nil
        guard let batch = coalescers[partition].take(nowMs: nowMs) else { return }
        let listeners = subscriptions.listeners(to: batch)
        let isForNow = isForNow(batch, listeners: listeners.most)
        loop.writing(toMost: isForNow ? listeners.all : 0) {
            pushing(now: isForNow) { push in subscriptions.deliver(batch, send: push, lagged: lags) }
        }
        for follower in streamWaiters.all(awaiting: batch) { follower.moved() }
    }

    /// The client does not keep up: its subscription has ended.
    private func lags(_ entry: Subscription<SocketClient>) {
        share.meters.lagged.add()
        entry.client.hasLeft()
        entry.client.send(.lagged(entry.stream, seq: entry.proven, head: rings[entry.partition].head), ref: nil)
    }

    /// Says how far the partitions were read to all who have not been told of it: to many in turns, so that what comes
    /// in between does not wait for long.
    func proveHeads() {
        let slots = Subscriptions<SocketClient>.slots
        guard subscriptions.count > Self.provenAtOnce else { return proveHeads(slots) }
        guard proveTimer == nil else { return }
        var slot = slots.lowerBound
        proveTimer = loop.every(Self.proveMs) { [self] in
            proveHeads(slot..<slot + 1)
            slot += 1
            guard slot == slots.upperBound else { return }
            proveTimer?()
            proveTimer = nil
        }
    }

    private static let provenAtOnce = 1_000
    /// All turns together take less than the second behind which the next ones come.
    private static let proveMs: Int64 = 30

    private func proveHeads(_ slots: Range<Int>) {
        for partition in rings.indices {
            deliver(partition)
            pushing(now: false) { push in
                subscriptions.tick(slots: slots, partition: partition, head: rings[partition].head, send: push)
            }
        }
    }

    /// Lends what pushes a frame to a client, and counts what it pushed, at once: the loops share their meters.
    private func pushing(now: Bool, _ body: ((SocketClient, WebSocketFrame) -> Bool) -> Void) {
        var (frames, bytes) = (0, 0)
        body { client, frame in
            guard client.push(frame, now: now) else { return false }
            frames += 1
            bytes += frame.bytes.count
            return true
        }
        share.meters.pushed(frames: frames, bytes: bytes)
    }

    private func deliverIfDue(_ partition: Int) {
        guard let dueMs = coalescers[partition].dueMs else { return }
        if dueMs <= nowMs { return deliver(partition) }
        guard gatherTimers[partition] == nil else { return }
        gatherTimers[partition] = loop.every(dueMs - nowMs) { [self] in
            gatherTimers[partition]?()
            gatherTimers[partition] = nil
            deliverIfDue(partition)
        }
    }
}
