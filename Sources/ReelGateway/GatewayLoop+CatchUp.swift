import ReelCore
import ReelLog
import ReelNet
import ReelNode

extension GatewayLoop {
    /// Begins to bring a subscription up to the head, in its turn; at once where nothing is missing. Says when it has.
    func beginToCatchUp(_ entry: Subscription<SocketClient>, begun: @escaping () -> Void) {
        if entry.hasOutcomes { follow(entry) }
        guard entry.next <= rings[entry.partition].head else {
            begun()
            return catchUp(entry)
        }
        turns.add { [self] in
            begun()
            guard !entry.isOver else { return false }
            catchUp(entry)
            return true
        }
    }

    /// Brings a subscription up to the head, from the ring or the log, at its client's pace. Then the tail feeds it; a
    /// subscription with outcomes hears that more has come, and reads on.
    func catchUp(_ entry: Subscription<SocketClient>) {
        guard !entry.isOver, !entry.isReading, !entry.isLive else { return }
        let (ring, client) = (rings[entry.partition], entry.client)
        guard entry.next <= ring.head else {
            if let error = share.stop(of: entry.partition) { return end(entry, error) }
            if entry.hasOutcomes { return proveHead(entry) }
            let gathers = gatherings[entry.partition].dueMs != nil
            return subscriptions.becameLive(entry, head: ring.head, gathers: gathers) { $0.send($1) }
        }
        let hasRoom = client.hasRoom { [self] in
            entry.isReading = false
            catchUp(entry)
        }
        entry.isReading = !hasRoom
        guard hasRoom else { return }
        // What waits for the log is bounded too: who lets go of a subscription does not end its wait.
        let waitsMax = share.settings.subscriptions
        entry.awaitsRead =
            entry.next < ring.first && client.logWaits >= waitsMax
            || entry.hasOutcomes && client.outcomeQuestions >= Self.logReadsMax
        if entry.awaitsRead { return }
        let bytes = subscriptions.bodyLimit(entry.stream)
        var hasBegun = false
        entry.isReading = true
        client.logWaits += 1
        let isUnderWay = read(
            entry.stream,
            through: entry.filter,
            partition: entry.partition,
            from: entry.next,
            to: ring.head,
            bytes: entry.hasOutcomes ? Self.bytesWithOutcomes(bytes) : bytes,
            events: entry.hasOutcomes ? Self.outcomesAtOnce : .max,
            for: client.access,
            mayBegin: {
                hasBegun = client.logReads < Self.logReadsMax
                if hasBegun { client.logReads += 1 }
                return hasBegun
            },
            // Many of its subscriptions may have waited for one page.
            hasRoom: { client.hasRoom }
        ) { [self] result in
            client.logWaits -= 1
            if hasBegun { client.logReads -= 1 }
            if hasBegun || client.logWaits == waitsMax - 1 { readOn(client) }
            guard !entry.isOver else { return }
            switch result {
            case .success(let chunk) where entry.hasOutcomes && chunk.count > 0:
                return sendWithOutcomes(chunk, to: entry)
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let error): return end(entry, reason(error, entry.stream))
            }
            goOn(entry)
        }
        guard !isUnderWay else { return }
        client.logWaits -= 1
        entry.isReading = false
        entry.awaitsRead = true
    }

    /// In its turn: what is left out or packed costs time and is not held up by its client; others come in between.
    private func goOn(_ entry: Subscription<SocketClient>) {
        turns.add { [self] in
            entry.isReading = false
            guard !entry.isOver else { return false }
            catchUp(entry)
            return true
        }
    }

    /// So many reads of the log are begun for one client at once. A loop has few places for them, and one that a
    /// client asks for and lets go of goes on to its end. Those that others have begun are waited for besides.
    static let logReadsMax = 4

    /// A read of the log has ended: the next one of the same client may begin.
    private func readOn(_ client: SocketClient) {
        for entry in subscriptions.all(of: client) where entry.awaitsRead {
            guard client.logReads < Self.logReadsMax, client.logWaits < share.settings.subscriptions else { return }
            entry.awaitsRead = false
            catchUp(entry)
        }
    }

    /// Who catches up where little is theirs is told of so many seqs at once, so that the next connection begins behind
    /// them.
    static let provenEvery: Seq = 65_536

    private func send(_ chunk: EventsChunk, to entry: Subscription<SocketClient>) {
        entry.next = chunk.to + 1
        guard chunk.count > 0 || chunk.to - entry.proven >= Self.provenEvery else { return }
        var chunk = chunk
        chunk.from = entry.proven + 1
        entry.client.send(chunk.frame(stream: entry.stream))
        entry.sent(to: chunk.to)
    }
}

// Subscriptions whose events come with their outcomes.
extension GatewayLoop {
    /// So many events are asked about at once.
    static let outcomesAtOnce = 1_000

    /// How many bytes of events to read where each gets an outcome, so that they fit into so many: an event takes a
    /// hundred bytes or more, its outcome at most a third of that.
    static func bytesWithOutcomes(_ limit: Int) -> Int { max(1, limit / 4 * 3) }

    /// From now on the subscription hears of what comes, until it is over.
    private func follow(_ entry: Subscription<SocketClient>) {
        let follower = OutcomeFollower(entry, of: self)
        guard followers.add(follower) else { return }
        entry.whenOver { [unowned self] in _ = followers.remove(follower) }
    }

    /// Sends the events when their outcomes are known. Later events wait in order.
    private func sendWithOutcomes(_ chunk: EventsChunk, to entry: Subscription<SocketClient>) {
        let client = entry.client
        guard let access = client.access else { return }
        client.outcomeQuestions += 1
        addOutcomes(to: chunk, of: entry.stream, for: access) { [self] result in
            client.outcomeQuestions -= 1
            readOn(client)
            guard !entry.isOver else { return }
            switch result {
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let problem): return end(entry, ReelError(problem.code, problem.detail))
            }
            goOn(entry)
        }
    }

    /// All up to the head has been looked at: says so where that was asked for.
    private func proveHead(_ entry: Subscription<SocketClient>) {
        let head = rings[entry.partition].head
        guard entry.owesProof, entry.proven < head else { return }
        entry.owesProof = false
        entry.client.send(EventsChunk(from: entry.proven + 1, to: head).frame(stream: entry.stream))
        entry.sent(to: head)
    }
}

/// Tells a subscription with outcomes of what comes.
private final class OutcomeFollower: Follower {
    private let entry: Subscription<SocketClient>
    private unowned let gateway: GatewayLoop

    init(_ entry: Subscription<SocketClient>, of gateway: GatewayLoop) {
        self.entry = entry
        self.gateway = gateway
    }

    var stream: StreamName { entry.stream }
    var partition: Int { entry.partition }

    func moved() { gateway.catchUp(entry) }

    func tick(nowMs: Int64) {
        entry.owesProof = true
        gateway.catchUp(entry)
    }

    // Its socket is told.
    func failed(_ error: ReelError) {}
    func sendAway(afterMs: Int64) {}
}

@available(*, unavailable)
extension OutcomeFollower: Sendable {}
