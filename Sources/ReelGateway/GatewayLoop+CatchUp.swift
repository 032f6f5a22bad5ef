import ReelCore
import ReelLog
import ReelNet
import ReelNode

extension GatewayLoop {
    /// Brings a subscription up to the head, from the ring or the log, at its client's pace; then the tail feeds it.
    func catchUp(_ entry: Subscription<SocketClient>) {
        guard !entry.isOver, !entry.isReading, !entry.isLive else { return }
        let (ring, client) = (rings[entry.partition], entry.client)
        guard entry.next <= ring.head else {
            if let error = share.stop(of: entry.partition) { return end(entry, error) }
            deliver(entry.partition)
            return subscriptions.becameLive(entry, head: ring.head) { client, frame in client.send(frame) }
        }
        guard client.isReady(orLater: { [self] in catchUp(entry) }) else { return }
        entry.isReading = true
        read(
            entry.stream,
            through: entry.filter,
            partition: entry.partition,
            from: entry.next,
            to: ring.head,
            bytes: subscriptions.bodyLimit(entry.stream)
        ) { [self] result in
            guard !entry.isOver else { return }
            switch result {
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let error): return end(entry, reason(error, entry.stream))
            }
            // What is left out or packed costs time and is not held up by its client: others come in between.
            loop.bound { [self] in goOn(entry) }(())
        }
    }

    /// Who catches up where little is theirs is told of so many seqs at once, so that the next connection begins behind
    /// them.
    static let provenEvery: Seq = 65_536

    private func goOn(_ entry: Subscription<SocketClient>) {
        entry.isReading = false
        catchUp(entry)
    }

    private func send(_ chunk: EventsChunk, to entry: Subscription<SocketClient>) {
        entry.next = chunk.to + 1
        guard chunk.count > 0 || chunk.to - entry.proven >= Self.provenEvery else { return }
        var chunk = chunk
        chunk.from = entry.proven + 1
        entry.client.send(chunk.frame(stream: entry.stream))
        entry.sent(to: chunk.to)
    }
}
