internal import ReelCore

// A connection that is slower than the events of its streams. Their states are read instead, where these are shorter.
extension SyncClient {
    /// Sends a ping, whose answer shows how long answers wait.
    func ping() {
        guard let number = link?.delay.pinged(nowMs: transport.nowMs) else { return }
        link?.connection?.ping(number)
    }

    /// Judges the connection when a frame has arrived.
    func measureDelay(bytes: Int) {
        guard link?.welcome != nil else { return }
        switch link?.delay.received(bytes: bytes, nowMs: transport.nowMs) {
        case .ping: ping()
        case .late: readStates()
        case nil, .some(.none): break
        }
    }

    /// Counts events, and leaves a connection that has long delivered only what is no longer needed.
    func countEvents(_ events: ServerFrame.Events, of stream: StreamState) {
        let nowMs = transport.nowMs
        stream.eventCost.add(events, nowMs: nowMs)
        guard let link, !stream.sync.isSubscribed, link.delay.waitedMs(nowMs: nowMs) >= LinkDelay.uselessMs else {
            return
        }
        lost(link.number, "answers wait behind events that are no longer needed")
    }

    private func readStates() {
        let nowMs = transport.nowMs
        for stream in opened.values where stream.sync.isLive && stream.eventCost.count(nowMs: nowMs) > 0 {
            guard let objects = stream.view?.totals(), stream.eventCost.exceeds(objects) else { continue }
            step(stream, .behind)
            if stream.sync.reading != .events { counters.slowLinks += 1 }
        }
    }
}
