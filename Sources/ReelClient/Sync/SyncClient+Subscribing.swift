internal import ReelCore

// The streams that become ready in the same turn are subscribed with one frame.
extension SyncClient {
    /// The maximum size of a `subscribe` with several streams in bytes, even if a node would accept more.
    private static let subscribeBytes = 256 << 10

    /// Subscribes to the stream with the next frame, at the latest at the end of the turn.
    func subscribeAtTurnEnd(_ stream: StreamState, _ position: StreamSync.Position) {
        let beginsNow = position == .now
        let subscribe = ClientFrame.Subscribe(
            stream: stream.name,
            position: beginsNow ? .now : .after(stream.seq),
            epoch: stream.view?.fold.epoch,
            last: beginsNow ? nil : stream.view?.witness
        )
        stream.subscribeRef = Ref.subscribe(after: unsubscribes)
        let isFirst = unsentSubscribes.isEmpty
        unsentSubscribes.append(subscribe)
        guard isFirst else { return }
        transport.onBatchEnd { [weak self] in self?.assumeIsolated { $0.sendSubscribes() } }
    }

    /// Sends the subscribes that were collected, before any other frame.
    func sendSubscribes() {
        guard !unsentSubscribes.isEmpty else { return }
        var rest = unsentSubscribes[...]
        unsentSubscribes = []
        guard let limits = link?.welcome?.limits else { return }
        // A node of an older build takes one stream.
        let streamsMax = max(1, min(limits.subscribe ?? 1, ClientFrame.subscribeStreams))
        let bytesMax = min(limits.frame, Self.subscribeBytes)
        while let first = rest.first {
            var (count, bytes) = (0, Self.frameRoom)
            for subscribe in rest.prefix(streamsMax) {
                bytes += subscribe.encodedBytes
                if count > 0, bytes > bytesMax { break }
                count += 1
            }
            let body = count == 1 ? ClientFrame.Body.subscribe(first) : .subscribeAll(Array(rest.prefix(count)))
            transmit(ClientFrame(body, ref: Ref.subscribe(after: unsubscribes)))
            rest = rest.dropFirst(count)
        }
    }
}

extension ClientFrame.Subscribe {
    /// The bytes that this client's subscribe takes in a frame, at most.
    fileprivate var encodedBytes: Int { stream.description.utf8.count * 2 + 160 }
}
