/// What one partition of a log holds: of each seq what it is, and the judge's own fold of all of it.
struct LoggedPartition: Sendable {
    /// What lies at a seq.
    enum Content: UInt8 {
        /// Nothing that anybody may deliver.
        case hole, void, seed
        case barrier
        /// An event that the fold consumed.
        case consumed
        /// An event that changed nothing.
        case duplicate, gap, stale, tooManySites, foreign
    }

    /// A record, as evidence.
    struct Record {
        var content: Content
        var hash: UInt64
        var site: Site?
        var op: Int64
        var stream: Text?
    }

    let number: Int
    /// The first seq of the dump.
    let first: Int64
    /// The last seq of the dump; `first` − 1 if it is empty.
    var last: Int64 { first + Int64(contents.count) - 1 }
    private let entries: [LogIndex.Entry]
    private let index: LogIndex
    private var contents: [UInt8] = []
    private var hashes: [UInt64] = []
    private var sites: [Int32] = []
    private var ops: [Int64] = []
    private var streams: [Int32] = []
    private var siteNames: [Site] = []
    private var streamNames: [Text] = []
    private var streamNumbers: [Text: Int32] = [:]
    /// The seqs of each stream's events.
    private var events: [[Int64]] = []
    private(set) var barriers: [Int64] = []
    /// A dump could not be read to its end, or which one was taken last is not known: nor is what follows `last`.
    let isPartial: Bool
    /// How many seqs are empty, and how many hold a record that is void.
    var empty: Int { contents.count { $0 == Content.hole.rawValue } }
    var void: Int { contents.count { $0 == Content.void.rawValue } }
    /// Whether the fold knows all from seq 0 on.
    var isWhole: Bool { first == 0 }
    /// Up to here the partition can be folded: an unknown barrier stops it.
    private(set) var foldable: Int64 = .max
    /// The last seq of whose state the next epoch begins, where a loss behind it was printed; −1: it begins empty; nil:
    /// no loss was printed.
    let keptSeq: Int64?
    /// The fold of the whole partition.
    private(set) var fold: NaiveFold
    /// The state as of `keptSeq`; nil: there is none, or the dump does not hold that seq.
    var kept: [Text: StreamState]?
    /// The state with which the epoch began; nil: the dump ends before.
    var planted: [Text: StreamState]? { fold.planted }
    /// Two dumps that hold different records at one seq.
    private(set) var contradictions: [(seq: Int64, lines: [Quote?])] = []
    /// What could not be read, and where the dump leaves seqs out.
    private(set) var troubles: [String] = []

    /// Reads and folds a partition, of which all behind `keptSeq` was printed as lost; at each of `seqs`, `pause` is
    /// called with the fold as of then.
    init(
        _ number: Int,
        of partitions: Int,
        epoch: String,
        _ end: LogEnd,
        _ index: LogIndex,
        keptSeq: Int64?,
        pausing seqs: [Int64],
        pause: (Int64, borrowing NaiveFold) -> Void
    ) {
        self.number = number
        entries = end.entries
        self.index = index
        self.keptSeq = keptSeq
        first = entries.first?.seq ?? 0
        isPartial = !index.troubles.isEmpty || end.trouble != nil
        troubles = [end.trouble].compactMap(\.self)
        fold = NaiveFold(epoch: epoch, partition: number, of: partitions)
        var pauses = seqs.sorted()[...]
        var siteNumbers: [Site: Int32] = [:]
        let known = Self.known(entries, index.kcat)
        var leftOut: (count: Int64, first: Int64, place: String)?
        do throws(Fault) {
            for entry in entries {
                while let seq = pauses.first, seq < entry.seq {
                    pause(pauses.removeFirst(), fold)
                }
                let next = first + Int64(contents.count)
                guard entry.seq >= next else {
                    try compare(entry)
                    continue
                }
                guard entry.seq - next <= Self.holesMax else {
                    throw Fault("\(index.place(entry)): seq \(entry.seq) follows seq \(next - 1)")
                }
                for _ in next..<entry.seq { append(.hole, hash: 0, site: -1, op: -1, stream: -1) }
                if next < entry.seq, !known.contains(where: { $0.lowerBound < next && $0.upperBound >= entry.seq }) {
                    leftOut = (
                        (leftOut?.count ?? 0) + entry.seq - next, leftOut?.first ?? next,
                        leftOut?.place ?? index.place(entry)
                    )
                }
                try take(entry, partitions, &siteNumbers)
            }
        } catch {
            troubles.append("\(error.reason); dump the log again")
        }
        if let leftOut {
            troubles.append(
                "\(leftOut.place): the dump leaves out \(leftOut.count) seqs of partition \(number), the first is "
                    + "\(leftOut.first), and does not say that they are empty; dump the log again, all of it"
            )
        }
        while let seq = pauses.first, seq <= last { pause(pauses.removeFirst(), fold) }
    }

    /// No log has so many empty seqs in a row: it is the line that is damaged.
    private static let holesMax: Int64 = 10_000_000

    /// From which seq to which kcat has read: what it has no line of there is empty. A log in a file has no empty seqs,
    /// and `reel dump` names those of Kafka.
    private static func known(_ entries: [LogIndex.Entry], _ kcat: Set<Int32>) -> [ClosedRange<Int64>] {
        guard !kcat.isEmpty else { return [] }
        var bounds: [Int32: ClosedRange<Int64>] = [:]
        for entry in entries where kcat.contains(entry.file) {
            bounds[entry.file] = (bounds[entry.file]?.lowerBound ?? entry.seq)...entry.seq
        }
        return Array(bounds.values)
    }

    private mutating func append(_ content: Content, hash: UInt64, site: Int32, op: Int64, stream: Int32) {
        contents.append(content.rawValue)
        hashes.append(hash)
        sites.append(site)
        ops.append(op)
        streams.append(stream)
    }

    private mutating func take(
        _ entry: LogIndex.Entry,
        _ partitions: Int,
        _ siteNumbers: inout [Site: Int32]
    ) throws(Fault) {
        if entry.isEmpty { return append(.hole, hash: 0, site: -1, op: -1, stream: -1) }
        let file = index.files[Int(entry.file)]
        let line = try index.line(entry)
        let reader = LineReader(file.bytes, line.place)
        let key = line.key.map(reader.decoded) ?? []
        let value = line.value.map(reader.decoded) ?? []
        let hash = fnv1a(value)
        let record = ReelCheck.Record(key: key, value: value, in: number, of: partitions)
        let judgement = fold.apply(record, key: key, seq: entry.seq)
        guard case .event(let event) = record, let content = Content(judgement) else {
            let content: Content = judgement == .barrier ? .barrier : judgement == .seed ? .seed : .void
            if content == .barrier { barriers.append(entry.seq) }
            if judgement == .stopped { foldable = min(foldable, entry.seq - 1) }
            return append(content, hash: hash, site: -1, op: -1, stream: -1)
        }
        if siteNumbers[event.site] == nil {
            siteNumbers[event.site] = Int32(siteNames.count)
            siteNames.append(event.site)
        }
        let stream = stream(Text(key))
        events[Int(stream)].append(entry.seq)
        append(content, hash: hash, site: siteNumbers[event.site] ?? -1, op: event.op, stream: stream)
    }

    private mutating func stream(_ name: Text) -> Int32 {
        if let number = streamNumbers[name] { return number }
        let number = Int32(streamNames.count)
        streamNumbers[name] = number
        streamNames.append(name)
        events.append([])
        return number
    }

    /// Another dump has the same seq: it must have the same record.
    private mutating func compare(_ entry: LogIndex.Entry) throws(Fault) {
        let place = Int(entry.seq - first)
        guard place < hashes.count else { return }
        let isHole = contents[place] == Content.hole.rawValue
        if !isHole, !entry.isEmpty {
            let line = try index.line(entry)
            let reader = LineReader(index.files[Int(entry.file)].bytes, line.place)
            guard fnv1a(line.value.map(reader.decoded) ?? []) != hashes[place] else { return }
        } else if isHole == entry.isEmpty {
            return
        }
        contradictions.append((entry.seq, [quote(entry.seq), index.quote(entry)]))
    }
}

// MARK: - Asking

extension LoggedPartition {
    /// What lies at a seq; nil outside the dump.
    subscript(seq: Int64) -> Record? {
        guard seq >= first, seq <= last, let content = Content(rawValue: contents[Int(seq - first)]) else { return nil }
        let place = Int(seq - first)
        return Record(
            content: content,
            hash: hashes[place],
            site: sites[place] < 0 ? nil : siteNames[Int(sites[place])],
            op: ops[place],
            stream: streams[place] < 0 ? nil : streamNames[Int(streams[place])]
        )
    }

    /// The hash of what is delivered of a stream at this seq; nil if nothing is.
    @inline(__always)
    func delivered(_ seq: Int64, stream: Int32) -> UInt64? {
        guard seq >= first, seq <= last else { return nil }
        let place = Int(seq - first)
        let content = contents[place]
        guard content >= Content.barrier.rawValue, content == Content.barrier.rawValue || streams[place] == stream
        else { return nil }
        return hashes[place]
    }

    /// Why nothing can be said of a seq, and what to do; nil: what the dump holds there counts. Below its begin it says
    /// nothing; beyond its end the log has nothing, unless the dump was cut.
    func reasonNotToJudge(_ seq: Int64) -> String? {
        if isPartial, seq > last { return "no dump could be read that far; dump the log again" }
        if keptSeq != nil, seq > last { return "it lies behind what is left of a lost log; add a dump from before" }
        if seq < first { return "the dump begins behind it; add one that was taken before the log was trimmed" }
        guard seq > foldable else { return nil }
        return "it lies behind a barrier that this judge does not know; judge it with the release that wrote it"
    }

    /// True if an operator retired the site, in this epoch or in an earlier one, before this seq. No event of it that
    /// lies there has an effect, and none is missing.
    func isRetired(_ site: Site, in stream: Text, before seq: Int64) -> Bool {
        guard let end = fold.streams[stream]?.sites[site]?.end, end != -1, end < seq else { return false }
        return self[end]?.site != site
    }

    /// Whether a seq lies in what was printed as lost.
    func isPrintedAsLost(_ seq: Int64) -> Bool { keptSeq.map { seq > $0 } ?? false }

    /// The number that stands for a stream here; −1 if it has no event.
    func number(of stream: Text) -> Int32 {
        streamNumbers[stream] ?? -1
    }

    /// How many events and barriers of a stream lie in a range.
    func count(_ stream: Int32, in range: ClosedRange<Int64>) -> Int {
        let own = stream < 0 ? 0 : Self.slice(events[Int(stream)], in: range).count
        return own + (barriers.isEmpty ? 0 : Self.slice(barriers, in: range).count)
    }

    /// The first event or barrier of a stream in a range that is not among these seqs.
    func missing(_ stream: Int32, in range: ClosedRange<Int64>, from seqs: Set<Int64> = []) -> Int64? {
        [stream < 0 ? [] : events[Int(stream)], barriers].compactMap { all in
            Self.slice(all, in: range).first { !seqs.contains($0) }
        }.min()
    }

    /// The line of the dump at a seq.
    func quote(_ seq: Int64) -> Quote? {
        entry(seq).map(index.quote)
    }

    /// Where the line of the dump at a seq stands.
    func place(_ seq: Int64) -> String? {
        entry(seq).map(index.place)
    }

    private func entry(_ seq: Int64) -> LogIndex.Entry? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].seq < seq { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].seq == seq ? entries[low] : nil
    }

    /// Every event: its stream, site, op and seq.
    func eachEvent(_ body: (Text, Site, Int64, Int64) -> Void) {
        for place in contents.indices where sites[place] >= 0 {
            body(streamNames[Int(streams[place])], siteNames[Int(sites[place])], ops[place], first + Int64(place))
        }
    }

    /// Those of the sorted seqs that lie in a range.
    private static func slice(_ seqs: [Int64], in range: ClosedRange<Int64>) -> ArraySlice<Int64> {
        seqs[place(seqs, after: range.lowerBound - 1)..<place(seqs, after: range.upperBound)]
    }

    /// How many of the sorted seqs are at most this one.
    private static func place(_ seqs: [Int64], after seq: Int64) -> Int {
        var (low, high) = (0, seqs.count)
        while low < high {
            let middle = (low + high) / 2
            if seqs[middle] <= seq { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension LoggedPartition.Content {
    /// What an event came to; nil for what is no event.
    fileprivate init?(_ judgement: Judgement?) {
        switch judgement {
        case .applied, .rejected: self = .consumed
        case .duplicate: self = .duplicate
        case .gap: self = .gap
        case .stale: self = .stale
        case .tooManySites: self = .tooManySites
        case .foreign: self = .foreign
        case .seed, .barrier, .void, .stopped, nil: return nil
        }
    }
}
