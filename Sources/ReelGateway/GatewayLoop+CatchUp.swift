import ReelCore
import ReelLog
import ReelNet
import ReelNode

extension GatewayLoop {
    /// Starts the catch-up of a subscription in its turn, or at once if nothing is missing. Calls `begun` when it
    /// starts.
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

    /// Sends a subscription the events up to the head, at its client's pace. Then the subscription becomes live, and
    /// the tail feeds it. A subscription with outcomes never becomes live: `OutcomeFollower` calls this method again
    /// when there are more events.
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
        // Waits for the log are limited per client. Ending a subscription does not end its wait, so ended ones count
        // too.
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
            // Many subscriptions of one client may have waited for the same page.
            hasRoom: { client.hasRoom }
        ) { [self] result in
            client.logWaits -= 1
            if hasBegun { client.logReads -= 1 }
            if hasBegun || client.logWaits == waitsMax - 1 { readMore(client) }
            guard !entry.isOver else { return }
            switch result {
            case .success(let chunk) where entry.hasOutcomes && chunk.count > 0:
                return sendWithOutcomes(chunk, to: entry)
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let error): return end(entry, reason(error, entry.stream))
            }
            resume(entry)
        }
        guard !isUnderWay else { return }
        client.logWaits -= 1
        entry.isReading = false
        entry.awaitsRead = true
    }

    /// Continues to catch up in the subscription's turn. Reading and packing cost time that the client's pace does not
    /// limit, so the loop does other work in between.
    func resume(_ entry: Subscription<SocketClient>) {
        turns.add { [self] in
            entry.isReading = false
            guard !entry.isOver else { return false }
            catchUp(entry)
            return true
        }
    }

    /// The maximum number of log reads that one client may have started at a time, and of its questions for outcomes. A
    /// loop can run few reads at once, and a read runs to its end even if the client abandons it. A client may also
    /// wait for reads that other clients started.
    static let logReadsMax = 4

    /// Called when a read or a question of the client has ended. Continues the subscriptions that waited for that.
    func readMore(_ client: SocketClient) {
        for entry in subscriptions.all(of: client) where entry.awaitsRead {
            guard client.logReads < Self.logReadsMax, client.logWaits < share.settings.subscriptions else { return }
            entry.awaitsRead = false
            catchUp(entry)
        }
    }

    /// The number of seqs after which a subscription gets a frame even if it has no events in them. The next connection
    /// of the client then starts after these seqs.
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
