import ReelBase
import ReelCore
import ReelLog
import ReelNode

/// The recent records of one partition, limited in bytes. The gateway answers from the ring without asking the log.
struct Ring {
    /// The ring's knowledge of a stream with events in it.
    private struct Track {
        var seqs = Deque<Seq>()
        var sites: [Site: Run] = [:]

        /// Adds the events of a batch. `mayBegin`: true if the events of a site from op 0 on may be its first ones.
        mutating func remember(_ batch: TailBatch, _ places: [Int], mayBegin: Bool) {
            var runs = RunPlaces()
            for place in places {
                guard case .event(_, let site, let op) = batch.kinds[place] else { continue }
                let seq = batch.records.entries[place].seq
                seqs.append(seq)
                if op == 0, mayBegin, sites[site] == nil, Ring.isFresh(batch[place], batch) {
                    sites[site] = Run(by: batch.withValue(batch[place]) { PublishedContent($0).by.map { Array($0) } })
                    runs = RunPlaces()
                }
                guard let run = runs.index(of: site, in: sites) else { continue }
                sites.values[run].remember(seq, op)
            }
        }

        /// Removes the events of the oldest batch.
        mutating func forget(_ batch: TailBatch, _ places: [Int]) {
            var runs = RunPlaces()
            for place in places {
                guard case .event(_, let site, _) = batch.kinds[place], let seq = seqs.popFirst() else { continue }
                guard let run = runs.index(of: site, in: sites), sites.values[run].seqs.first == seq else { continue }
                _ = sites.values[run].seqs.popFirst()
                guard sites.values[run].seqs.isEmpty else { continue }
                sites.remove(at: run)
                runs = RunPlaces()
            }
        }
    }

    /// The events of a site from op 0 on, each the first of its op after the event before: the events that the fold
    /// consumes.
    private struct Run {
        var seqs = Deque<Seq>()
        private(set) var next: Op = 0
        /// The text of `by` in the first event of the site; nil: it has none.
        let by: [UInt8]?

        init(by: [UInt8]?) {
            self.by = by
        }

        func isWritten(by user: Bytes?) -> Bool {
            guard let by, let user else { return by == nil && user == nil }
            return by.withUnsafeBytes { $0.equals(user) }
        }

        mutating func remember(_ seq: Seq, _ op: Op) {
            guard op == next else { return }
            seqs.append(seq)
            next += 1
        }

        func seq(of op: Op) -> Seq? {
            let index = op - (next - Op(seqs.count))
            return op < next && index >= 0 ? seqs[Int(index)] : nil
        }
    }

    /// A cache of the runs of the last sites, because the next event most often has one of the same few sites. It is
    /// valid until a run is added or removed.
    private struct RunPlaces {
        private typealias Place = (site: Site, index: [Site: Run].Index?)
        private var places = InlineArray<8, Place?>(repeating: nil)

        mutating func index(of site: Site, in runs: [Site: Run]) -> [Site: Run].Index? {
            let slot = Int(site.low & 7)
            if let place = places[slot], place.site == site { return place.index }
            let index = runs.index(forKey: site)
            places[slot] = (site, index)
            return index
        }
    }

    /// The minimum number of seqs between a stream's horizon and its newest event.
    private static let horizonSeqs = Seq(Limits.marks - 1) * Limits.markEvery

    /// The lowest seq that the ring covers; `head + 1` if none.
    private(set) var first: Seq
    /// The last seq read; −1: none.
    private(set) var head: Seq
    /// The last record read, with its hash; nil until one was read.
    private(set) var witness: Witness?
    private var batches = Deque<TailBatch>()
    private var tracks: [StreamName: Track] = [:]
    private var barriers = Deque<Seq>()
    /// True if the partition begins with the state of an earlier epoch.
    private var hasSeeds = false
    private(set) var byteCount = 0
    private let byteLimit: Int

    /// Creates an empty ring that begins at `first`.
    init(from first: Seq, byteLimit: Int) {
        self.first = first
        head = first - 1
        self.byteLimit = byteLimit
    }

    /// Adds the next batch. Returns false and adds nothing if the batch does not follow the head.
    mutating func append(_ batch: TailBatch) -> Bool {
        guard batch.seqs.lowerBound == head + 1 else { return false }
        // Seeds come before all events.
        if batch.seedsEnd != nil { hasSeeds = true }
        // A site may have begun with an event before the ring's first one, or with a seed. Then the ring proves
        // nothing.
        let mayBegin = first == 0 && !hasSeeds
        for (name, places) in zip(batch.streams, batch.places) {
            tracks[name, default: Track()].remember(batch, places, mayBegin: mayBegin)
        }
        if batch.hasBarriers {
            for index in batch.kinds.indices where batch.kinds[index] == .barrier {
                barriers.append(batch.records.entries[index].seq)
            }
        }
        batches.append(batch)
        head = batch.last
        byteCount += batch.costBytes
        witness = batch.witness ?? witness
        while byteCount > byteLimit, batches.count > 1 { evict() }
        return true
    }

    /// Returns true if an event is certainly not `stale`, whatever the stream's horizon is.
    private static func isFresh(_ item: TailBatch.Item, _ batch: TailBatch) -> Bool {
        let base = batch.withValue(item) { PublishedContent($0).baseSeq }
        return base.map { $0 >= item.entry.seq - horizonSeqs } ?? false
    }

    private mutating func evict() {
        guard let batch = batches.popFirst() else { return }
        byteCount -= batch.costBytes
        first = batch.seqs.upperBound
        while let seq = barriers.first, seq < first { _ = barriers.popFirst() }
        for (name, places) in zip(batch.streams, batch.places) {
            tracks[name]?.forget(batch, places)
            if tracks[name]?.seqs.isEmpty == true { tracks[name] = nil }
        }
    }

    // MARK: Reading

    /// Returns the record at a seq; nil if the seq is a hole, or is not in the ring any more.
    func item(at seq: Seq) -> (batch: TailBatch, item: TailBatch.Item)? {
        guard seq >= first, seq <= head else { return nil }
        let batch = batches[batches.partitioningIndex { $0.last < seq }]
        return batch.records.index(of: seq).map { (batch, batch[$0]) }
    }

    /// Returns the piece of a query that covers at least one seq; nil if the ring does not hold the query's range.
    func piece(for query: LogQuery) -> EventRange? {
        guard query.from >= first, query.to <= head else { return nil }
        let seqs = tracks[query.stream]?.seqs ?? Deque()
        var place = seqs.partitioningIndex { $0 < query.from }
        var barrier = barriers.partitioningIndex { $0 < query.from }
        var builder = EventRangeBuilder(from: query.from, bytes: query.bytes, events: query.events)
        var filter = FilterRun(query.filter)
        while true {
            let ours = place < seqs.count ? seqs[place] : .max
            let next = min(ours, barrier < barriers.count ? barriers[barrier] : .max)
            guard next <= query.to, let (batch, item) = item(at: next) else {
                builder.prove(to: query.to)
                return builder.range
            }
            let isAdded = batch.withValue(item) {
                builder.add(next, $0, through: &filter, isEvent: next == ours)
            }
            guard isAdded else { return builder.range }
            if next == ours { place += 1 } else { barrier += 1 }
        }
    }

    /// Returns a function that looks for a conflict with an event of the stream. It returns the seq of an event with
    /// the same site and op, but other content, that the fold has consumed. It returns nil if there is none, or if the
    /// ring cannot prove it.
    func conflict(in stream: StreamName) -> (_ value: [UInt8], _ site: Site, _ op: Op) -> Seq? {
        guard let sites = tracks[stream]?.sites, !sites.isEmpty else { return { _, _, _ in nil } }
        return { value, site, op in
            guard let seq = sites[site]?.seq(of: op), let (batch, item) = item(at: seq) else { return nil }
            let isOther = value.withUnsafeBytes { value in
                batch.withValue(item) { PublishedContent(value).contradicts(PublishedContent($0)) }
            }
            return isOther ? seq : nil
        }
    }

    /// Returns a function that says why the fold certainly does not consume an event of the stream, although its op is
    /// not used. It returns nil if the fold may consume the event, or if the ring cannot prove the opposite.
    func refusal(in stream: StreamName) -> (_ value: [UInt8], _ site: Site, _ op: Op) -> ReelError? {
        guard let sites = tracks[stream]?.sites, !sites.isEmpty else { return { _, _, _ in nil } }
        return { value, site, op in
            guard let run = sites[site], let last = run.seqs.last, isRecent(last, in: stream) else { return nil }
            guard value.withUnsafeBytes({ run.isWritten(by: PublishedContent($0).by) }) else {
                return ReelError(.foreign, "the site \(site) is another user's")
            }
            guard op >= run.next, let (batch, item) = item(at: last), batch.withValue(item, Self.endsSite) else {
                return nil
            }
            return ReelError(.gap, "the site \(site) ended with op \(run.next - 1) at seq \(last)")
        }
    }

    private static func endsSite(_ value: Bytes) -> Bool {
        var event = ParsedEvent()
        return (try? event.parse(value)) != nil && event.last
    }

    /// Returns true if the fold still knows what the stream's event at `seq` has done to its site.
    private func isRecent(_ seq: Seq, in stream: StreamName) -> Bool {
        let seqs = tracks[stream]?.seqs ?? Deque()
        return seqs.count - seqs.partitioningIndex { $0 < seq } < Int(Self.horizonSeqs)
    }

    /// Returns the seq of the copy of an acked event that the fold has consumed, and true if that copy has the same
    /// content. Returns nil if the ring cannot prove it.
    func firstCopy(of ack: ServerFrame.Acked, in stream: StreamName) -> (seq: Seq, isSame: Bool)? {
        guard let seq = tracks[stream]?.sites[ack.site]?.seq(of: ack.op) else { return nil }
        if seq == ack.seq { return (seq, true) }
        guard isRecent(seq, in: stream) else { return nil }
        guard let (batch, first) = item(at: seq), let (later, own) = item(at: ack.seq) else { return nil }
        let isOther = batch.withValue(first) { first in
            later.withValue(own) { PublishedContent($0).contradicts(PublishedContent(first)) }
        }
        return (seq, !isOther)
    }

    /// Returns true if the record at `seq` is an event of the stream with this hash; nil if the ring does not hold the
    /// seq.
    func agrees(stream: StreamName, seq: Seq, hash: UInt64) -> Bool? {
        guard seq >= first, seq <= head else { return nil }
        guard let (batch, item) = item(at: seq), case .event(let index, _, _) = item.kind else { return false }
        return batch.streams[index] == stream && batch.records.witness(of: item.entry).hash == hash
    }
}
