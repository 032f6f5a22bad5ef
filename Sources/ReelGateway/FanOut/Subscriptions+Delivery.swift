import ReelCore
import ReelLog
import ReelNet
import ReelNode

// Delivering the tail's batches to live subscriptions.
extension Subscriptions {
    /// Delivers a batch to all live subscriptions. A frame is made once for all clients with the same position.
    ///
    /// - Parameter send: Returns false if the client does not keep up.
    /// - Returns: The subscriptions of clients that do not keep up.
    func deliver(_ batch: TailBatch, send: (Client, WebSocketFrame) -> Bool) -> [Entry] {
        var late: [Entry] = []
        if batch.hasBarriers {
            for (stream, entries) in live where entries.first?.partition == batch.partition {
                late += deliver(batch, stream, batch.streams.firstIndex(of: stream), to: entries, send)
            }
        } else {
            for (index, stream) in batch.streams.enumerated() {
                guard let entries = live[stream] else { continue }
                late += deliver(batch, stream, index, to: entries, send)
            }
        }
        return late
    }

    private func deliver(
        _ batch: TailBatch,
        _ stream: StreamName,
        _ index: Int?,
        to entries: [Entry],
        _ send: (Client, WebSocketFrame) -> Bool
    ) -> [Entry] {
        let places = batch.delivered(in: index ?? -1)
        var whole: DeliveredBatch?
        var filtered: (batch: FilteredBatch, views: [EventFilter: DeliveredBatch])?
        var late: [Entry] = []
        for entry in entries {
            let frames: [WebSocketFrame]
            if entry.proven >= batch.seqs.lowerBound {
                // It caught up while the batch was gathered, so it gets only the later events.
                let wanted = entry.filter.map { FilteredBatch(batch, places: places).places(for: $0) } ?? places
                let rest = wanted.filter { batch[$0].entry.seq > entry.proven }
                var view = DeliveredBatch(batch, rest, stream, bodyLimit(stream))
                frames = view.frames(after: entry.proven)
            } else if let wanted = entry.filter {
                if filtered == nil { filtered = (FilteredBatch(batch, places: places), [:]) }
                let filter = filtered?.batch.reduced(wanted) ?? wanted
                var view =
                    filtered?.views[filter]
                    ?? DeliveredBatch(batch, filtered?.batch.places(for: filter) ?? [], stream, bodyLimit(stream))
                frames = view.frames(after: entry.proven)
                filtered?.views[filter] = view
            } else {
                if whole == nil { whole = DeliveredBatch(batch, places, stream, bodyLimit(stream)) }
                frames = whole?.frames(after: entry.proven) ?? []
            }
            // A batch without events for it is proven by the next frame with events, or by `upto`.
            if frames.isEmpty { continue }
            var keepsUp = true
            for frame in frames { keepsUp = keepsUp && send(entry.client, frame) }
            if keepsUp { entry.sent(to: batch.last) } else { late.append(entry) }
        }
        return late
    }
}
