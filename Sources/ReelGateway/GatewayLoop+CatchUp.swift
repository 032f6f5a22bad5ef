import ReelCore
import ReelLog
import ReelNet
import ReelNode

extension GatewayLoop {
    /// Begins to bring a subscription up to the head, in its turn; at once where nothing is missing. Says when it has.
    func beginToCatchUp(_ entry: Subscription<SocketClient>, begun: @escaping () -> Void) {
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

    /// Brings a subscription up to the head, from the ring or the log, at its client's pace; then the tail feeds it.
    func catchUp(_ entry: Subscription<SocketClient>) {
        guard !entry.isOver, !entry.isReading, !entry.isLive else { return }
        let (ring, client) = (rings[entry.partition], entry.client)
        guard entry.next <= ring.head else {
            if let error = share.stop(of: entry.partition) { return end(entry, error) }
            let gathers = gatherings[entry.partition].dueMs != nil
            return subscriptions.becameLive(entry, head: ring.head, gathers: gathers) { $0.send($1) }
        }
        guard client.hasRoom(orLater: { [self] in catchUp(entry) }) else { return }
        // What waits for the log is bounded too: who lets go of a subscription does not end its wait.
        let waitsMax = share.settings.subscriptions
        entry.awaitsRead = entry.next < ring.first && client.logWaits >= waitsMax
        if entry.awaitsRead { return }
        var hasBegun = false
        entry.isReading = true
        client.logWaits += 1
        let isUnderWay = read(
            entry.stream,
            through: entry.filter,
            partition: entry.partition,
            from: entry.next,
            to: ring.head,
            bytes: subscriptions.bodyLimit(entry.stream),
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
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let error): return end(entry, reason(error, entry.stream))
            }
            // What is left out or packed costs time and is not held up by its client: others come in between.
            turns.add { [self] in
                entry.isReading = false
                guard !entry.isOver else { return false }
                catchUp(entry)
                return true
            }
        }
        guard !isUnderWay else { return }
        client.logWaits -= 1
        entry.isReading = false
        entry.awaitsRead = true
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
