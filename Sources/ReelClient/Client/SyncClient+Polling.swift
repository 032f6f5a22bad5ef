internal import ReelCore

// A connection has at most the subscriptions that its node allows. The streams that were opened first get them. The
// client polls the others by HTTP: events of other devices arrive late, but the queue is still sent.
extension SyncClient {
    /// The time between two polls of a stream with an empty queue.
    static let idlePollMs: Int64 = 30_000
    /// With many streams that time is this number times their count, so that the total rate of polls is limited.
    static let idlePollPerStreamMs: Int64 = 100
    /// The shortest pause between two polls of a stream whose queue moves. The pause doubles with each poll that
    /// settles nothing of the queue, up to the pause for an empty queue.
    static let pollMs: Int64 = 200

    /// True if the connection has a subscription for the stream.
    func hasPlace(_ stream: StreamState) -> Bool {
        guard let subscriptionsMax = link?.welcome?.limits.subscriptions, stream.refusedMs == nil else { return false }
        var older = 0
        for other in opened.values where older < subscriptionsMax {
            if other === stream { return true }
            if other.phase != .stopped { older += 1 }
        }
        return false
    }

    /// Gives the subscriptions of the connection to the streams that were opened first, after streams have stopped or
    /// have continued.
    func arrangePlaces() {
        guard let subscriptionsMax = link?.welcome?.limits.subscriptions else { return }
        let streams = opened.values.filter { $0.phase != .stopped }
        for stream in streams.dropFirst(subscriptionsMax) where stream.phase == .live || stream.phase == .subscribing {
            send(ClientFrame(.unsubscribe(stream.name)))
            stream.connectionLost()
            advance(stream)
        }
        for stream in streams.prefix(subscriptionsMax) where stream.phase == .polled && stream.refusedMs == nil {
            leavePolling(stream)
            advance(stream)
        }
    }

    /// Starts to poll a stream, because the connection has no subscription for it.
    func beginPolling(_ stream: StreamState) {
        polls.remove(stream.name)
        stream.phase = .polled
        stream.isCurrent = false
        stream.pollPauseMs = Self.pollMs
        // A polled stream has no moment from which events are pushed.
        stream.hasBeenLive = true
        note(.notSubscribed(stream.name, noPlace))
        if !stream.isLimitTold {
            stream.isLimitTold = true
            let reason = "\(noPlace.code.rawValue): \(noPlace.message)"
            notify(.stopped(stream: stream.name.description, reason: reason))
        }
        askToPoll(stream, atMs: transport.nowMs)
    }

    /// The reason why a stream is polled.
    private var noPlace: ReelError {
        let subscriptionsMax = link?.welcome?.limits.subscriptions ?? 0
        return ReelError(
            .limit,
            "the node allows \(subscriptionsMax) subscriptions of a connection: this stream is read every"
                + " \(Self.idlePollMs / 1_000) s, and sends what it has queued"
        )
    }

    /// Called when the node has refused the subscription for a limit that `welcome` does not show. A later poll tries
    /// the subscription again.
    func refusedForLimit(_ stream: StreamState) {
        guard stream.phase == .subscribing else { return }
        stream.refusedMs = transport.nowMs
        stream.phase = .idle
        advance(stream)
    }

    private func leavePolling(_ stream: StreamState) {
        stream.dropPoll()
        polls.remove(stream.name)
        stream.phase = .idle
    }

    /// Schedules a poll of the stream at this time, or earlier.
    func askToPoll(_ stream: StreamState, atMs: Int64) {
        polls.ask(stream.name, atMs: atMs)
        planPolls()
    }

    /// Schedules a poll soon. Either an entry of the queue has moved, or an entry may be sent from `notBeforeMs` on and
    /// depends on the present state.
    func pollSoon(_ stream: StreamState, notBeforeMs: Int64 = 0) {
        guard stream.phase == .polled, stream.poll == nil else { return }
        askToPoll(stream, atMs: max(transport.nowMs, notBeforeMs, stream.polledMs + stream.pollPauseMs))
    }

    private func planPolls() {
        pollTimer?.cancel()
        pollTimer = nil
        guard !isClosed, let nextMs = polls.nextMs else { return }
        pollTimer = after(max(1, nextMs - transport.nowMs)) { client in
            client.pollTimer = nil
            while let name = client.polls.next(nowMs: client.transport.nowMs) { client.poll(name) }
            client.planPolls()
        }
    }

    private func poll(_ name: StreamName) {
        guard let stream = opened[name], stream.phase == .polled, let node = link?.node, link?.welcome != nil else {
            return polls.remove(name)
        }
        if let refusedMs = stream.refusedMs, transport.nowMs - refusedMs >= Self.idlePollMs {
            stream.refusedMs = nil
            leavePolling(stream)
            return advance(stream)
        }
        stream.polledMs = transport.nowMs
        var target = "/v1/streams/\(name)/events?after=\(stream.seq)&limit=\(Self.fetchEvents)"
        if let epoch = stream.view?.fold.epoch { target += "&epoch=\(epoch)" }
        let page = EventsPage()
        let request = transport.get(from: node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.polled(response, page, name) }
        }
        stream.poll = StreamState.Poll(request: request, deadline: pollDeadline(stream))
    }

    private func pollDeadline(_ stream: StreamState) -> any TransportRequest {
        let (name, ms) = (stream.name, Self.fetchMs << Int64(min(stream.pollFailures, Self.fetchDoublings)))
        return after(ms) { client in
            guard let stream = client.opened[name] else { return }
            client.pollFailed(stream, ReelError(.logUnavailable, "no answer within \(ms) ms"))
        }
    }

    private func polled(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], stream.poll != nil, !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        stream.poll?.deadline.cancel()
        do throws(ReelError) {
            guard let events = try page.received(response, name) else {
                stream.poll?.deadline = pollDeadline(stream)
                return
            }
            stream.dropPoll()
            polls.remove(name)
            try polled(events, stream)
        } catch {
            pollFailed(stream, error)
        }
        planPolls()
    }

    private func polled(_ events: EventsPage.Events, _ stream: StreamState) throws(ReelError) {
        guard let welcome = link?.welcome, stream.phase == .polled else { return }
        guard events.epoch == welcome.epoch, events.partition == stream.name.partition(of: welcome.partitions),
            events.to >= events.from - 1
        else {
            throw ReelError(
                .nodeBehind,
                "found \(events.from)…\(events.to) of \(events.epoch), expected seqs of \(welcome.epoch)"
            )
        }
        if stream.view == nil {
            let fold = Fold(
                stream: stream.name,
                partition: events.partition,
                epoch: events.epoch,
                listsChanges: true
            )
            stream.view = View(fold, partitions: welcome.partitions)
        }
        let (waiting, before) = (stream.outbox.entries.count, stream.seq)
        try received(events.frame, isPushed: false)
        guard stream.phase == .polled else { return }
        stream.view?.polled(head: events.head)
        guard stream.seq > before || stream.seq >= events.head else {
            throw ReelError(.nodeBehind, "found nothing after seq \(before), expected seqs up to \(events.head)")
        }
        stream.pollFailures = 0
        stream.isDoubted = false
        if wantsSnapshot(stream) {
            stream.phase = .idle
            return advance(stream)
        }
        guard stream.seq >= events.head else { return askToPoll(stream, atMs: transport.nowMs) }
        note(.polled(stream.name, noPlace))
        // The stream is at its head, like a live one: events that are handed over now are based on this state.
        stream.isCurrent = true
        stream.sendsFrom = events.head
        let left = stream.outbox.entries.count
        let idleMs = max(Self.idlePollMs, Self.idlePollPerStreamMs * Int64(opened.values.count))
        let isMoving = left < waiting || left == 0
        stream.pollPauseMs = isMoving ? Self.pollMs : min(2 * stream.pollPauseMs, idleMs)
        askToPoll(stream, atMs: transport.nowMs + (left == 0 ? idleMs : stream.pollPauseMs))
        markDirty(stream)
    }

    private func pollFailed(_ stream: StreamState, _ error: ReelError) {
        stream.dropPoll()
        polls.remove(stream.name)
        stream.pollFailures += 1
        let pauseMs = error.retryMs ?? Self.pollMs << Int64(min(stream.pollFailures, 8))
        if stream.phase == .polled { stream.phase = .idle }
        // An error that says more than "no answer at the moment" is handled like a refused subscription.
        switch error.code {
        case .epochChanged, .aheadOfLog, .diverged, .truncated, .badStream, .unauthorized, .forbidden:
            failed(ServerFrame.Failure(error, stream: stream.name), ref: Ref.subscribe)
        default:
            retry(stream, afterMs: pauseMs)
        }
        planPolls()
    }
}
