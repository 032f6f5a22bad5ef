internal import ReelCore

// A connection has at most the subscriptions that its node allows. The streams that were opened first get them. The
// client polls the others by HTTP: events of other devices arrive late, but the queue is still sent.
extension SyncClient {
    /// With many streams, the pause between two polls of a stream with an empty queue is this number times their count,
    /// so that the total rate of polls is limited.
    static let idlePollPerStreamMs: Int64 = 100

    /// True if the stream is among those that get the subscriptions of the connection.
    func hasPlace(_ stream: StreamState) -> Bool {
        guard let subscriptionsMax = link?.welcome?.limits.subscriptions else { return false }
        var older = 0
        for other in opened.values where older < subscriptionsMax {
            if other === stream { return true }
            if other.sync.isReading { older += 1 }
        }
        return false
    }

    /// Gives the subscriptions of the connection to the streams that were opened first, after streams have stopped.
    /// `restartsAll`: true if the streams that have stopped will continue.
    func arrangePlaces(restartsAll: Bool = false) {
        guard let subscriptionsMax = link?.welcome?.limits.subscriptions else { return }
        let streams = opened.values.filter { restartsAll || $0.sync.isReading }
        for stream in streams.dropFirst(subscriptionsMax) where stream.sync.hasPlace {
            step(stream, .placeChanged(false))
        }
        for stream in streams.prefix(subscriptionsMax) where !stream.sync.hasPlace {
            step(stream, .placeChanged(true))
        }
    }

    /// The reason why a stream is polled.
    var noPlace: ReelError {
        let subscriptionsMax = link?.welcome?.limits.subscriptions ?? 0
        return ReelError(
            .limit,
            "the node allows \(subscriptionsMax) subscriptions of a connection: this stream is read every"
                + " \(StreamSync.idlePollMs / 1_000) s, and sends what it has queued"
        )
    }

    /// Schedules a poll of the stream at this time, or earlier.
    func askToPoll(_ stream: StreamState, atMs: Int64) {
        polls.ask(stream.name, atMs: atMs)
        planPolls()
    }

    private func planPolls() {
        pollTimer?.cancel()
        pollTimer = nil
        guard !isClosed, link?.welcome != nil, let nextMs = polls.nextMs else { return }
        pollTimer = after(max(1, nextMs - transport.nowMs)) { client in
            client.pollTimer = nil
            while let name = client.polls.next(nowMs: client.transport.nowMs) {
                if let stream = client.opened[name] { client.step(stream, .timerFired(.poll)) }
            }
            client.planPolls()
        }
    }

    /// Requests the events after the folded seq.
    func poll(_ stream: StreamState) {
        guard let node = link?.node else { return }
        let (name, page) = (stream.name, EventsPage())
        var target = "/v1/streams/\(name)/events?after=\(stream.seq)&limit=\(Self.fetchEvents)"
        if let epoch = stream.view?.fold.epoch { target += "&epoch=\(epoch)" }
        let request = transport.get(from: node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.polled(response, page, name) }
        }
        stream.handles.keep(request: .poll, request)
    }

    /// Ends a poll, so that another stream can be polled.
    func endPoll(_ stream: StreamState) {
        stream.handles.cancel(request: .poll)
        polls.remove(stream.name)
        planPolls()
    }

    private func polled(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else { return step(stream, .progressed(.poll)) }
            endPoll(stream)
            let answer = try polled(events, stream)
            step(stream, .pollAnswered(answer))
        } catch {
            endPoll(stream)
            step(stream, .pollFailed(error))
        }
    }

    private func polled(_ events: EventsPage.Events, _ stream: StreamState) throws(ReelError) -> StreamSync.PollAnswer {
        guard let welcome = link?.welcome, events.epoch == welcome.epoch,
            events.partition == stream.name.partition(of: welcome.partitions), events.to >= events.from - 1
        else {
            throw ReelError(
                .nodeBehind,
                "found \(events.from)…\(events.to) of \(events.epoch), expected seqs of the connected log"
            )
        }
        makeView(stream, welcome)
        let (waiting, before) = (stream.outbox.entries.count, stream.seq)
        try apply(events.frame, isPushed: false, stream)
        stream.view?.polled(head: events.head)
        guard !stream.sync.isReading || stream.seq > before || stream.seq >= events.head else {
            throw ReelError(.nodeBehind, "found nothing after seq \(before), expected seqs up to \(events.head)")
        }
        let left = stream.outbox.entries.count
        return StreamSync.PollAnswer(
            head: events.head,
            isMoving: left < waiting,
            isQueueEmpty: left == 0,
            idleMs: max(StreamSync.idlePollMs, Self.idlePollPerStreamMs * Int64(opened.values.count))
        )
    }
}
