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

    /// Sends a subscription the events up to the head, from the ring or the log, at its client's pace. Then the
    /// subscription becomes live, and the tail feeds it. A subscription with outcomes never becomes live:
    /// `OutcomeFollower` calls this again when more events have come.
    func catchUp(_ entry: Subscription<SocketClient>) {
        guard !entry.isOver, !entry.isReading, !entry.isLive else { return }
        let (ring, client) = (rings[entry.partition], entry.client)
        guard entry.next <= ring.head else {
            if let error = share.stop(of: entry.partition) { return end(entry, error) }
            if entry.hasOutcomes { return proveHead(entry) }
            let gathers = coalescers[entry.partition].dueMs != nil
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

    /// Continues to catch up in the subscription's turn: reading and packing cost time, and the client does not slow
    /// them down, so other work of the loop comes in between.
    func goOn(_ entry: Subscription<SocketClient>) {
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
    func readOn(_ client: SocketClient) {
        for entry in subscriptions.all(of: client) where entry.awaitsRead {
            guard client.logReads < Self.logReadsMax, client.logWaits < share.settings.subscriptions else { return }
            entry.awaitsRead = false
            catchUp(entry)
        }
    }

    /// Who catches up where little is theirs is told of so many seqs at once, so that the next connection begins behind
    /// them.
    static let provenEvery: Seq = 65_536

    func send(_ chunk: EventRange, to entry: Subscription<SocketClient>) {
        entry.next = chunk.to + 1
        guard chunk.count > 0 || chunk.to - entry.proven >= Self.provenEvery else { return }
        var chunk = chunk
        chunk.from = entry.proven + 1
        entry.client.send(chunk.frame(stream: entry.stream))
        entry.sent(to: chunk.to)
    }
}
