import ReelCore
import ReelLog
import ReelNet
import ReelNode

extension GatewayLoop {
    /// Brings a subscription up to the head, from the ring or the log, at its client's pace; then the tail feeds it.
    func catchUp(_ entry: Subscription<SocketClient>) {
        while !entry.isOver, !entry.isReading, !entry.isLive {
            let (ring, client) = (rings[entry.partition], entry.client)
            guard entry.next <= ring.head else {
                if let error = share.stop(of: entry.partition) { return end(entry, error) }
                deliver(entry.partition)
                return subscriptions.becameLive(entry, head: ring.head) { client, frame in client.send(frame) }
            }
            guard client.isReady(orLater: { [self] in catchUp(entry) }) else { return }
            entry.isReading = true
            var isDone = false
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
                case .failure(let error): end(entry, reason(error, entry.stream))
                }
                guard entry.filter == nil else {
                    // What is left out costs time and is not held up by its client: others come in between.
                    return loop.bound { [self] in goOn(entry) }(())
                }
                entry.isReading = false
                if isDone { catchUp(entry) }
            }
            isDone = true
        }
    }

    private func goOn(_ entry: Subscription<SocketClient>) {
        entry.isReading = false
        catchUp(entry)
    }

    private func send(_ chunk: EventsChunk, to entry: Subscription<SocketClient>) {
        entry.next = chunk.to + 1
        guard chunk.count > 0 else { return }
        var chunk = chunk
        chunk.from = entry.proven + 1
        entry.client.send(chunk.frame(stream: entry.stream))
        entry.sent(to: chunk.to)
    }
}
