import ReelBase
import ReelCore
import ReelNet

/// One client of a load run. It has a connection, and on it a site that publishes, or a reader, or both, of one stream.
final class LoadClient: LoadConnectionOwner {
    let name: String
    let stream: StreamName
    let history: History?
    private unowned let stage: LoadStage
    private(set) var connection: LoadConnection!
    private var welcome: ServerFrame.Welcome?

    /// The site under which the client publishes; nil for a reader.
    private(set) var site: Site?
    /// The epoch to which the site's events go.
    private var epoch: Epoch?
    private let kind: LoadEvent.Kind
    private(set) var queue = PublishQueue()
    private var lastAckNs: Int64 = 0
    /// The longest time without an ack while the client waited for one.
    private(set) var longestPauseNs: Int64 = 0
    /// The time at which the client ended its last planned offline time; `.max` during that time.
    private(set) var backNs: Int64 = 0
    private var isHeld = false
    private(set) var isRefused = false

    /// The position of the reader; nil for a publisher.
    private(set) var view: FollowedStream?
    /// True if the client subscribes from "now" after a lost connection and fetches the gap, instead of having it
    /// pushed.
    private let fetches: Bool
    private var asked: [ClosedRange<Seq>] = []
    private var fetchNumber: Int64 = 0
    /// The head at the time of the subscription.
    private var head: Seq?

    /// The role of a client.
    enum Role: String {
        case publisher, reader, editor
        /// A reader that begins with the folded state.
        case cold
    }

    let role: Role

    init(_ role: Role, _ number: Int, on stream: StreamName, stage: LoadStage) {
        name = "\(role.rawValue)-\(number)"
        self.role = role
        self.stream = stream
        self.stage = stage
        kind = role == .editor ? .text : .count
        site = role == .publisher || role == .editor ? Site.random() : nil
        view = role == .publisher ? nil : FollowedStream()
        fetches = !number.isMultiple(of: 2)
        history = stage.plan.histories?.history(of: name, .client)
        connection = LoadConnection(
            self,
            to: stage.gateways,
            seed: stage.plan.seed &+ UInt64(number) &* 0x9e37_79b9 &+ UInt64(role.rawValue.utf8.count),
            frames: stage.frames,
            on: stage.loop
        )
    }

    // MARK: The connection

    func welcomed(_ welcome: ServerFrame.Welcome, by url: String) {
        self.welcome = welcome
        history?.connected(to: url, welcome)
        stage.welcomed(self, welcome, by: url)
        resume(in: welcome.epoch)
        subscribe()
    }

    func lost(_ url: String, _ loss: ConnectionLoss) {
        welcome = nil
        isHeld = false
        queue.rewind()
        view?.ended()
        if loss.wasWelcome { history?.disconnected(code: loss.code, reason: loss.reason) }
        stage.lost(self, url, loss)
    }

    func received(_ frame: ServerFrame) {
        switch frame.body {
        case .ack(let ack): acked(ack)
        case .nack(let nack): nacked(nack, ref: frame.ref)
        case .subscribed(let subscribed): self.subscribed(subscribed)
        case .upto(let partition, let seq):
            history?.upto(partition: partition, seq: seq)
            if view?.partition == partition { view?.upto(seq) }
            looksWhetherLive()
        case .lagged(let stream, let seq, let head):
            history?.lagged(stream, seq: seq, head: head)
            stage.statistics.lagged += 1
            view?.ended()
            subscribe()
        case .error(let failure): failed(failure)
        case .welcome, .events, .goaway, .nodes, .unsubscribed: break
        }
    }

    /// Called when a request of this client has failed. If another gateway may have the answer, it is sent again a
    /// little later.
    private func failed(_ failure: ServerFrame.Failure) {
        stage.failed(self, failure.error)
        guard view != nil, failure.stream == stream else { return }
        view?.ended()
        switch failure.error.code {
        case .truncated: load { _ in }
        case .nodeBehind, .logUnavailable, .overloaded, .rateLimited:
            later(.milliseconds(failure.error.retryMs ?? 250)) { $0.subscribe() }
        default:
            later(.seconds(1)) { $0.connection.cut() }
        }
    }

    private func later(_ delay: Duration, _ body: @escaping (LoadClient) -> Void) {
        let connected = welcome
        stage.loop.timer(after: delay) { [weak self] in
            guard let self, welcome != nil, welcome == connected else { return }
            body(self)
        }
    }

    /// Goes offline for `duration`, as planned.
    func rest(_ duration: Duration) {
        backNs = .max
        connection.rest(duration) { [weak self] in self?.backNs = MonotonicClock.nowNs() }
    }

    /// Ends the client, and writes the end of its history.
    func end() {
        // A cold reader that gets no state gives up, and reports no position. Any other reader waits until the run
        // ends.
        if let view, view.epoch != nil || role != .cold { history?.reached(stream, view.epoch, seq: view.reached) }
        history?.ended(unacked: queue.unacked)
        connection.close()
    }
}

// MARK: - Publishing

extension LoadClient {
    /// Called when an event is due.
    func publish(dueNs: Int64) {
        queue.add(dueNs: dueNs)
    }

    /// Publishes in this epoch. A log that has lost records may know fewer events of the site than were acked. It would
    /// consume no event after that gap, so the client continues under another site.
    private func resume(in epoch: Epoch) {
        guard let site, let former = self.epoch, former != epoch, queue.highestAcked >= 0 else {
            self.epoch = epoch
            return publishMore()
        }
        isHeld = true
        stage.states.beginning(of: stream, in: epoch) { [weak self] fold in
            guard let self, welcome?.epoch == epoch, self.epoch == former else { return }
            resume(in: epoch, knowing: fold.map { $0.site(site)?.op ?? .none })
        }
    }

    /// Publishes in this epoch. `op`: the last op of the site that the epoch's log knows. Nil if it cannot be found
    /// out, such as without a snapshot node: then the client takes another site, which is right in any case.
    func resume(in epoch: Epoch, knowing op: Op?) {
        if op ?? -1 < queue.highestAcked {
            if let site { history?.left(stream, site) }
            site = .random()
            queue.restart()
        }
        self.epoch = epoch
        isHeld = false
        publishMore()
    }

    /// Hands over the events that may be sent.
    func publishMore() {
        guard let site, let welcome, backNs < .max, !isHeld, !isRefused else { return }
        let batchMax = max(1, min(welcome.limits.batch, 256, welcome.limits.frame / (stage.plan.size + 512)))
        while true {
            let before = queue.handedOver
            let entries = queue.next(batchMax, backNs: backNs)
            guard let first = entries.first, let last = entries.last else { return }
            history?.sent(stream, site, ops: first.op...last.op)
            let events = entries.map { LoadEvent.json(kind, site: site, entry: $0, fill: stage.fill) }
            let publish = ClientFrame.Publish(stream: stream, events: events)
            connection.send(ClientFrame(.publish(publish), ref: Array("\(queue.generation)".utf8)))
            stage.statistics.sent += entries.count
            stage.statistics.resent += Int(max(0, min(before, last.op) - first.op + 1))
        }
    }

    private func acked(_ ack: ServerFrame.Ack) {
        history?.acked(ack)
        let now = MonotonicClock.nowNs()
        for acked in ack.acks where acked.site == site {
            let since = max(lastAckNs, backNs, queue.oldestDueNs ?? now)
            guard let entry = queue.acked(acked.op) else { continue }
            longestPauseNs = max(longestPauseNs, now - since)
            stage.acked(self, latencyNs: now - entry.dueNs, pauseNs: now - since, ack.epoch, acked.seq)
        }
        lastAckNs = now
        publishMore()
    }

    private func nacked(_ nack: ServerFrame.Nack, ref: [UInt8]?) {
        history?.nacked(nack)
        stage.nacked(self, nack.error)
        guard nack.site == site else { return }
        // The gateway moves to the next epoch, and unacked events are sent again to that epoch's log.
        if nack.error.code == .epochChanged {
            isHeld = true
            return later(.seconds(1)) { $0.connection.cut() }
        }
        let generation = ref.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
        switch queue.nacked(nack.op, retryMs: nack.error.retryMs, generation: generation) {
        case .none: break
        case .sendAgain(let afterMs):
            isHeld = true
            later(.milliseconds(max(afterMs, 20))) { client in
                client.isHeld = false
                client.publishMore()
            }
        case .refused:
            isRefused = true
            stage.refused(self, nack.error)
        }
    }
}

// MARK: - Reading

extension LoadClient {
    /// Subscribes from the present position.
    private func subscribe() {
        guard let view, let welcome else { return }
        var position = ClientFrame.Position.now
        if let epoch = view.epoch, epoch != welcome.epoch {
            position = .after(.none)
        } else if view.epoch != nil, !fetches {
            position = .after(view.reached)
        }
        let subscribe = ClientFrame.Subscribe(stream: stream, position: position, epoch: welcome.epoch)
        connection.send(ClientFrame(.subscribe(subscribe)))
    }

    private func subscribed(_ subscribed: ServerFrame.Subscribed) {
        history?.subscribed(subscribed)
        _ = view?.subscribed(subscribed)
        head = subscribed.head
        fetchMore()
        looksWhetherLive()
    }

    /// Loads the folded state in place of the events up to its seq, then subscribes after it.
    func load(_ done: @escaping (Bool) -> Void) {
        stage.states.load(stream) { [weak self] loaded in
            guard let self else { return }
            guard let loaded else { return done(false) }
            history?.loaded(stream, loaded.epoch, seq: loaded.seq)
            view?.loaded(loaded.epoch, seq: loaded.seq)
            subscribe()
            done(true)
        }
    }

    /// Ends the start of a cold reader once it has everything up to the head of its subscription.
    private func looksWhetherLive() {
        guard role == .cold, let head, let view, view.reached >= head else { return }
        self.head = nil
        stage.isLive(self)
    }

    func received(_ frame: FrameCache.Frame) {
        guard view != nil else { return }
        let proof = frame.proof
        let isFetched = frame.ref != nil
        history?.received(proof, isFetched: isFetched)
        view?.received(from: proof.from, to: proof.to, isFetched: isFetched)
        stage.delivered(frame)
        looksWhetherLive()
        if isFetched, view?.holds(asked) == true {
            view?.fetched()
            fetchMore()
        }
    }

    private func fetchMore() {
        guard let epoch = view?.epoch, let ranges = view?.fetch(), !ranges.isEmpty else { return }
        asked = ranges
        fetchNumber += 1
        stage.statistics.fetches += 1
        let fetch = ClientFrame.Fetch(stream: stream, epoch: epoch, ranges: ranges)
        connection.send(ClientFrame(.fetch(fetch), ref: Array("\(fetchNumber)".utf8)))
    }
}
