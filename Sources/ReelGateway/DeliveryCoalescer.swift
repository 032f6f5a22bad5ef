import ReelCore
import ReelLog

/// What the tail of a partition has brought and a loop has not sent yet.
///
/// A write to a socket costs nearly the same for one event as for ten, and more than all else of a delivery. So where
/// events come faster than a loop can well send each of them to all who listen, the writes keep a distance that grows
/// with those who listen: what comes sooner waits and goes out together, and a loop has time for other things. What few
/// listen to goes out at once, and so does what comes slowly.
struct DeliveryCoalescer {
    /// However many listen, nothing waits longer than this behind what was sent last.
    private static let distanceMsMax = 15
    /// With so many bytes one write has enough.
    private static let bytesMax = 64 << 10

    private let listenerMicros: Int
    private var batches: [TailBatch] = []
    private var bytes = 0
    /// Between two writes to those who listen to what is here, where they keep one.
    private var distanceMs: Int64 = 0
    private var keepsDistance = false
    private var lastMs = -Int64(distanceMsMax)

    /// For each who listens the distance is so many microseconds more.
    init(listenerMicros: Int) {
        self.listenerMicros = listenerMicros
    }

    /// Takes the next batch in; so many listen to one of its streams. `keepsDistance`: a loop would have too much to do
    /// if it sent it by itself.
    mutating func add(_ batch: TailBatch, listeners: Int, keepsDistance: Bool) {
        batches.append(batch)
        bytes += batch.byteCount
        distanceMs = max(distanceMs, Int64(min(listeners * listenerMicros / 1_000, Self.distanceMsMax)))
        self.keepsDistance = self.keepsDistance || keepsDistance
    }

    /// When what is here is to go out; nil: nothing is.
    var dueMs: Int64? {
        if batches.isEmpty { return nil }
        return keepsDistance && distanceMs > 0 && bytes < Self.bytesMax ? lastMs + distanceMs : .min
    }

    /// All that is here, as one batch.
    mutating func take(nowMs: Int64) -> TailBatch? {
        guard !batches.isEmpty else { return nil }
        if distanceMs > 0 { lastMs = nowMs }
        defer { (batches, bytes, distanceMs, keepsDistance) = ([], 0, 0, false) }
        return batches.count == 1 ? batches[0] : TailBatch(joining: batches)
    }
}

extension TailBatch {
    /// One batch of some, each of which follows the one before; at least one.
    convenience init(joining batches: [TailBatch]) {
        var entries: [RecordBatch.Entry] = []
        var kinds: [Kind] = []
        var streams: [StreamName] = []
        var indexes: [StreamName: Int] = [:]
        for batch in batches {
            let places = batch.streams.map { name in
                if let index = indexes[name] { return index }
                indexes[name] = streams.count
                streams.append(name)
                return streams.count - 1
            }
            // A batch may end before its records do.
            entries += batch.records.entries.prefix(batch.kinds.count)
            kinds += batch.kinds.map { kind in
                guard case .event(let stream, let site, let op) = kind else { return kind }
                return .event(stream: places[stream], site: site, op: op)
            }
        }
        let seqs = batches[0].seqs.lowerBound..<batches[batches.count - 1].seqs.upperBound
        self.init(
            records: RecordBatch(partition: batches[0].partition, seqs: seqs, entries: entries) {
                withExtendedLifetime(batches) {}
            },
            seqs: seqs,
            kinds: kinds,
            streams: streams
        )
    }
}
