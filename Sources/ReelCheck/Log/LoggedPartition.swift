/// The content of one partition of a log: the kind of each record, and the checker's own fold of all records.
struct LoggedPartition: Sendable {
    /// The content of a seq.
    enum Content: UInt8 {
        /// A seq without anything that a gateway may deliver.
        case hole, void, seed
        case barrier
        /// An event that the fold consumed.
        case consumed
        /// An event that changed nothing.
        case duplicate, gap, stale, tooManySites, foreign
    }

    /// A record as evidence.
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
    /// True if a dump could not be read to its end, or if it is unknown which dump is the last. Then the content after
    /// `last` is unknown.
    let isPartial: Bool
    /// The number of empty seqs; `void` is the number of void records.
    var empty: Int { contents.count { $0 == Content.hole.rawValue } }
    var void: Int { contents.count { $0 == Content.void.rawValue } }
    /// True if the fold includes all records from seq 0 on.
    var isWhole: Bool { first == 0 }
    /// The last seq that can be folded; an unknown barrier stops the fold.
    private(set) var foldable: Int64 = .max
    /// The last seq that the next epoch's initial state includes, if a loss of later records was printed. −1 means that
    /// the next epoch begins empty; nil means that no loss was printed.
    let keptSeq: Int64?
    /// The fold of the whole partition.
    private(set) var fold: NaiveFold
    /// The state as of `keptSeq`; nil if there is none, or if the dump does not contain that seq.
    var kept: [Text: StreamState]?
    /// The state with which the epoch began; nil if the dump ends before.
    var planted: [Text: StreamState]? { fold.planted }
    /// The seqs at which two dumps contain different records.
    private(set) var contradictions: [(seq: Int64, lines: [Quote?])] = []
    /// The lines that could not be read, and the seqs that the dump leaves out.
    private(set) var troubles: [String] = []

    /// Reads and folds a partition.
    /// - Parameters:
    ///   - keptSeq: the seq after which all records were printed as lost; nil if there is no loss.
    ///   - seqs: the seqs at which `pause` is called.
    ///   - pause: called with a seq and the fold as of that seq.
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

    /// The maximum number of adjacent empty seqs. No log has that many; a larger gap means a damaged line.
    private static let holesMax: Int64 = 10_000_000

    /// Returns the ranges that kcat has read, in which a seq without a line is empty. A log in a file has no empty
    /// seqs, and `reel dump` names those of Kafka.
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

    /// Compares the record of another dump with the one at the same seq: both must be equal.
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
    /// The record at a seq; nil outside the dump.
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

    /// Returns the hash of the event or barrier that is delivered for a stream at this seq; nil if there is none.
    @inline(__always)
    func delivered(_ seq: Int64, stream: Int32) -> UInt64? {
        guard seq >= first, seq <= last else { return nil }
        let place = Int(seq - first)
        let content = contents[place]
        guard content >= Content.barrier.rawValue, content == Content.barrier.rawValue || streams[place] == stream
        else { return nil }
        return hashes[place]
    }

    /// Returns the reason why a seq cannot be checked, with advice; nil if the dump is decisive for it. A dump says
    /// nothing about seqs before its beginning. The log has no record beyond the end of the dump, unless the dump was
    /// cut.
    func reasonNotToJudge(_ seq: Int64) -> String? {
        if isPartial, seq > last { return "no dump could be read that far; dump the log again" }
        if keptSeq != nil, seq > last { return "it is after the rest of a lost log; add a dump from before the loss" }
        if seq < first { return "the dump begins after it; add one that was taken before the log was trimmed" }
        guard seq > foldable else { return nil }
        return "it is after a barrier that this checker does not know; check it with the release that wrote it"
    }

    /// True if an operator retired the site before this seq, in this epoch or in an earlier one. From then on no event
    /// of the site has an effect, and none is missing.
    func isRetired(_ site: Site, in stream: Text, before seq: Int64) -> Bool {
        guard let end = fold.streams[stream]?.sites[site]?.end, end != -1, end < seq else { return false }
        return self[end]?.site != site
    }

    /// True if the seq was printed as lost.
    func isPrintedAsLost(_ seq: Int64) -> Bool { keptSeq.map { seq > $0 } ?? false }

    /// Returns the number of a stream in this partition; −1 if it has no event.
    func number(of stream: Text) -> Int32 {
        streamNumbers[stream] ?? -1
    }

    /// Returns the number of events and barriers of a stream in a range.
    func count(_ stream: Int32, in range: ClosedRange<Int64>) -> Int {
        let own = stream < 0 ? 0 : Self.slice(events[Int(stream)], in: range).count
        return own + (barriers.isEmpty ? 0 : Self.slice(barriers, in: range).count)
    }

    /// Returns the first event or barrier of a stream in a range that is not in `seqs`; nil if there is none.
    func missing(_ stream: Int32, in range: ClosedRange<Int64>, from seqs: Set<Int64> = []) -> Int64? {
        [stream < 0 ? [] : events[Int(stream)], barriers].compactMap { all in
            Self.slice(all, in: range).first { !seqs.contains($0) }
        }.min()
    }

    /// Returns the dump's line at a seq.
    func quote(_ seq: Int64) -> Quote? {
        entry(seq).map(index.quote)
    }

    /// Returns the place of the dump's line at a seq.
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

    /// Calls `body` for every event with its stream, site, op and seq.
    func eachEvent(_ body: (Text, Site, Int64, Int64) -> Void) {
        for place in contents.indices where sites[place] >= 0 {
            body(streamNames[Int(streams[place])], siteNames[Int(sites[place])], ops[place], first + Int64(place))
        }
    }

    /// Returns the sorted seqs that are in a range.
    private static func slice(_ seqs: [Int64], in range: ClosedRange<Int64>) -> ArraySlice<Int64> {
        seqs[upperBound(seqs, of: range.lowerBound - 1)..<upperBound(seqs, of: range.upperBound)]
    }

    /// Returns the number of sorted seqs that are at most `seq`.
    private static func upperBound(_ seqs: [Int64], of seq: Int64) -> Int {
        var (low, high) = (0, seqs.count)
        while low < high {
            let middle = (low + high) / 2
            if seqs[middle] <= seq { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension LoggedPartition.Content {
    /// Creates the content for the result of an event; nil if the record is not an event.
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
