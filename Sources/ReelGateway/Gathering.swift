import ReelCore
import ReelLog

/// What the tail of a partition has brought and a loop has not sent yet.
///
/// A write to a socket costs nearly the same for one event as for ten. So where many listen, the next events go out
/// the later the more of them come, 15 ms after the last ones at most. An event that comes alone goes out at once, and
/// so does what few listen to.
struct Gathering {
    /// For each record that waits, so long after what was sent last to many, ...
    private static let recordMs: Int64 = 5
    /// ... and no longer than this.
    private static let waitMsMax: Int64 = 15
    /// With so many bytes one write has enough.
    private static let bytesMax = 64 << 10

    private let listenersMin: Int
    private var batches: [TailBatch] = []
    private var records = 0
    private var bytes = 0
    private var isForMany = false
    private var lastMs = -waitMsMax

    /// So many who listen to one stream are many.
    init(listenersMin: Int) {
        self.listenersMin = listenersMin
    }

    /// Takes the next batch in; so many listen to one of its streams.
    mutating func add(_ batch: TailBatch, listeners: Int) {
        batches.append(batch)
        records += batch.kinds.count
        bytes += batch.byteCount
        if listeners >= listenersMin { isForMany = true }
    }

    /// When what is here is to go out; nil: nothing is.
    var dueMs: Int64? {
        if batches.isEmpty { return nil }
        guard isForMany, bytes < Self.bytesMax else { return .min }
        return lastMs + min(Int64(records) * Self.recordMs, Self.waitMsMax)
    }

    /// All that is here, as one batch.
    mutating func take(nowMs: Int64) -> TailBatch? {
        guard !batches.isEmpty else { return nil }
        if isForMany { lastMs = nowMs }
        defer { (batches, records, bytes, isForMany) = ([], 0, 0, false) }
        return TailBatch(joining: batches)
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
