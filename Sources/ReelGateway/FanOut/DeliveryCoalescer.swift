import ReelCore
import ReelLog

/// The batches of a partition's tail that a loop has not sent yet.
///
/// A write to a socket costs nearly the same for one event as for ten, and more than the rest of a delivery. If events
/// arrive faster than a loop can send each of them to all listeners, the writes keep a minimum distance. The distance
/// grows with the number of listeners. Events that arrive sooner wait and go out together, and the loop has time for
/// other work. Events with few listeners go out at once, and so do events that arrive slowly.
struct DeliveryCoalescer {
    /// The maximum distance from the last write in milliseconds, for any number of listeners.
    private static let distanceMsMax = 15
    /// The number of bytes that are enough for one write: it waits no longer.
    private static let bytesMax = 64 << 10

    private let listenerMicros: Int
    private var batches: [TailBatch] = []
    private var bytes = 0
    /// The distance in milliseconds between two writes to the listeners of these batches, if they keep one.
    private var distanceMs: Int64 = 0
    private var keepsDistance = false
    private var lastMs = -Int64(distanceMsMax)

    /// Creates an empty coalescer. `listenerMicros` is the distance in microseconds for each listener.
    init(listenerMicros: Int) {
        self.listenerMicros = listenerMicros
    }

    /// Adds the next batch.
    ///
    /// - Parameters:
    ///   - batch: The batch.
    ///   - listeners: The number of listeners to that stream of the batch with most of them.
    ///   - keepsDistance: True if sending each batch separately would be too much work for the loop.
    mutating func add(_ batch: TailBatch, listeners: Int, keepsDistance: Bool) {
        batches.append(batch)
        bytes += batch.byteCount
        distanceMs = max(distanceMs, Int64(min(listeners * listenerMicros / 1_000, Self.distanceMsMax)))
        self.keepsDistance = self.keepsDistance || keepsDistance
    }

    /// When the batches are to be sent; nil: there are none.
    var dueMs: Int64? {
        if batches.isEmpty { return nil }
        return keepsDistance && distanceMs > 0 && bytes < Self.bytesMax ? lastMs + distanceMs : .min
    }

    /// Removes all batches and returns them as one batch; nil: there are none.
    mutating func take(nowMs: Int64) -> TailBatch? {
        guard !batches.isEmpty else { return nil }
        if distanceMs > 0 { lastMs = nowMs }
        defer { (batches, bytes, distanceMs, keepsDistance) = ([], 0, 0, false) }
        return batches.count == 1 ? batches[0] : TailBatch(joining: batches)
    }
}

extension TailBatch {
    /// Joins batches, each of which follows the one before. At least one is needed.
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
