import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The events of a batch in one stream, as frames that are made once for all clients with the same position.
struct DeliveredBatch {
    private let stream: StreamName
    private let pieces: [EventRange]
    /// The frames that were made last. Nearly all clients have the same position, so these frames fit the next client.
    private var latest: (proven: Seq, frames: [WebSocketFrame])?

    /// Splits the records at `places` into pieces of at most `limit` bytes of events, unless a single event is larger.
    init(_ batch: TailBatch, _ places: [Int], _ stream: StreamName, _ limit: Int) {
        self.stream = stream
        let room = places.reduce(0) { $0 + EventRange.size(value: batch[$1].entry.valueCount) }
        var builder = EventRangeBuilder(from: batch.seqs.lowerBound, bytes: limit, room: min(room, limit))
        var pieces: [EventRange] = []
        for place in places {
            let (item, seq) = (batch[place], batch[place].entry.seq)
            batch.withValue(item) { value in
                guard !builder.add(seq: seq, value: value) else { return }
                pieces.append(builder.range)
                builder = EventRangeBuilder(from: seq, bytes: limit)
                _ = builder.add(seq: seq, value: value)
            }
        }
        builder.prove(to: batch.last)
        self.pieces = pieces + [builder.range]
    }

    /// Returns the frames for a client that holds everything up to `proven`; none if there is nothing to tell.
    mutating func frames(after proven: Seq) -> [WebSocketFrame] {
        guard pieces[0].count > 0 else { return [] }
        if let latest, latest.proven == proven { return latest.frames }
        let frames = pieces.indices.map { frame(of: $0, after: proven) }
        latest = (proven, frames)
        return frames
    }

    private func frame(of index: Int, after proven: Seq) -> WebSocketFrame {
        var piece = pieces[index]
        if index == 0 { piece.from = proven + 1 }
        return piece.frame(stream: stream)
    }
}
