internal import ReelCore

// A connection that is slower than the events of its streams. Their states are read instead, where these are shorter.
extension SyncClient {
    /// Sends a ping, whose answer shows how long answers wait.
    func ping() {
        link?.delay.pinged(nowMs: transport.nowMs)
        link?.connection?.ping()
    }

    /// Judges the connection after a frame.
    func measureDelay(bytes: Int, number: Int) {
        guard link?.number == number, link?.welcome != nil else { return }
        switch link?.delay.received(bytes: bytes, nowMs: transport.nowMs) {
        case .ping: ping()
        case .late: readStates()
        case nil, .some(.none): break
        }
    }

    /// Counts events, and leaves a connection that has long delivered only what is no longer needed.
    func count(_ events: ServerFrame.Events, of stream: StreamState) {
        guard let delay = link?.delay else { return }
        stream.eventCost.add(events, ping: delay.pings)
        guard !stream.sync.isSubscribed, delay.waitedMs(nowMs: transport.nowMs) >= LinkDelay.uselessMs,
            let number = link?.number
        else { return }
        lost(number, "answers wait behind events that are no longer needed")
    }

    private func readStates() {
        guard let pings = link?.delay.pings else { return }
        for stream in opened.values where stream.sync.isLive && stream.eventCost.ping == pings {
            guard let objects = stream.view?.totals(), stream.eventCost.exceeds(objects, seq: stream.seq) else {
                continue
            }
            step(stream, .behind)
            if stream.sync.reading != .events { counters.slowLinks += 1 }
        }
    }
}
