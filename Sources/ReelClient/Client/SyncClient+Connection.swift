internal import ReelCore

// The connection to the node that `Failover` names. There is one at a time.
extension SyncClient {
    /// The silence after which a connection is pinged. After twice this time it is given up.
    static let silenceMs: Int64 = 10_000
    static let name = "reel-swift/1"

    func connectNext() {
        guard !isClosed, let attempt = failover.next(nowMs: transport.nowMs) else { return }
        note(.connecting)
        links += 1
        let number = links
        link = Link(number: number, node: attempt.node, lastHeardMs: transport.nowMs)
        let pause = max(0, attempt.atMs - transport.nowMs)
        if pause == 0 {
            connect(number)
        } else {
            link?.timer = after(pause) { $0.connect(number) }
        }
    }

    private func connect(_ number: Int) {
        guard let link, link.number == number else { return }
        let patienceMs = failover.attemptMs
        self.link?.timer = after(patienceMs) { $0.lost(number, "no welcome within \(patienceMs) ms") }
        let connection = transport.connect(to: link.node) { [weak self] event in
            self?.assumeIsolated { $0.happened(event, on: number) }
        }
        self.link?.connection = connection
    }

    private func happened(_ event: TransportEvent, on number: Int) {
        guard link?.number == number, !isClosed else { return }
        link?.lastHeardMs = transport.nowMs
        link?.isPinged = false
        switch event {
        case .opened:
            failover.answered()
            enter()
        case .text(let bytes):
            measureDelay(bytes: bytes.count)
            received(bytes)
        case .alive: link?.delay.heard(nowMs: transport.nowMs)
        case .pong(let ping): link?.delay.answered(ping)
        case .closed where link?.leaving != nil: leave(number)
        case .closed(let reason): lost(number, reason)
        }
    }

    func welcomed(_ welcome: ServerFrame.Welcome) {
        guard let link, link.welcome == nil else {
            failover.learn(welcome.nodes)
            return renewed(welcome)
        }
        if let reason = reasonToLeave(welcome, link.node) { return lost(link.number, reason) }
        failover.learn(welcome.nodes)
        failover.welcomed(nowMs: transport.nowMs)
        eventLimit = welcome.limits.event
        if let lostAtMs {
            counters.failoverMs = transport.nowMs - lostAtMs
            counters.reconnects += 1
        }
        lostAtMs = nil
        link.timer?.cancel()
        self.link?.welcome = welcome
        stamps(welcome)
        renewLater(welcome)
        watch(link.number)
        ping()
        notify(.connected(node: link.node))
        note(.welcomed)
        guard let facts = syncLink else { return }
        digests.connected()
        for stream in opened.values {
            stream.outbox.connected()
            if leaveFormerEpoch(stream) { step(stream, .epochChanged) }
            if leaveOtherPartitions(stream, welcome) { step(stream, .stateDropped) }
            step(stream, .connectionOpened(facts, hasPlace: hasPlace(stream)))
            askOutcomes(stream)
        }
    }

    /// Checks periodically if the connection is still alive.
    private func watch(_ number: Int) {
        guard let link, link.number == number else { return }
        let silence = transport.nowMs - link.lastHeardMs
        if silence >= 2 * Self.silenceMs { return lost(number, "silent for \(silence) ms") }
        if silence >= Self.silenceMs, !link.isPinged {
            self.link?.isPinged = true
            ping()
        }
        self.link?.timer = after(max(10, Self.silenceMs - silence % Self.silenceMs)) { $0.watch(number) }
    }

    /// Drops a connection that is of no more use, and connects to the next node. `retryMs`: the time after which the
    /// node allows this client to return; nil: it named none.
    func lost(_ number: Int, _ reason: String, retryMs: Int64? = nil) {
        guard let link, link.number == number, !isClosed else { return }
        let wasWelcome = link.welcome != nil
        dropLink()
        if wasWelcome { lostAtMs = transport.nowMs }
        failover.lost(nowMs: transport.nowMs, retryMs: retryMs)
        notify(.disconnected(node: link.node, reason: reason))
        note(.disconnected(reason))
        connectNext()
    }

    /// Leaves the node, which has asked for that with `goaway`, once the chosen moment has come.
    func leave(_ number: Int) {
        guard let link, link.number == number, !isClosed else { return }
        dropLink()
        lostAtMs = transport.nowMs
        failover.lost(nowMs: transport.nowMs)
        notify(.disconnected(node: link.node, reason: "the node asked to go elsewhere"))
        note(.disconnected("the node asked to go elsewhere"))
        connectNext()
    }

    func dropLink() {
        guard link != nil else { return }
        noteUpToDate(opened.values, wallMs: heardMs)
        resources.dropLink()
        unsentSubscribes = []
        for stream in opened.values {
            stream.unansweredSinceMs = nil
            stream.handles.cancelOutcomes()
            step(stream, .connectionLost)
        }
        polls = PollSchedule()
    }

    func send(_ frame: ClientFrame) {
        sendSubscribes()
        transmit(frame)
    }

    /// Sends a frame before the collected subscribes.
    func transmit(_ frame: ClientFrame) {
        let bytes = frame.encoded()
        counters.framesSent += 1
        counters.bytesSent += Int64(bytes.count)
        link?.connection?.send(bytes)
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable (isolated SyncClient) -> Void) -> any TransportHandle {
        transport.after(ms) { [weak self] in self?.assumeIsolated { body($0) } }
    }
}
