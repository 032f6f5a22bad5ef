/// Reads the lines of a snapshot, delta or rest strictly. Each line must be canonical and in its place, and the count
/// and the digest in the last line must be right.
///
/// Errors:
/// - `bad_frame`: a line is not valid;
/// - `epoch_changed`, `bad_range`: a delta or rest does not fit the fold;
/// - `diverged`: the digest is wrong;
/// - `too_large`: an object exceeds the limits.
public struct SnapshotReader: Sendable {
    enum Step: Int {
        case first, sites, objects, tombstones, done
    }

    var step = Step.first
    /// The fold that is being read; nil before the first line of a snapshot, which names the stream.
    var fold: Fold?
    private let isDelta: Bool
    private let listsChanges: Bool
    private let source: (any ObjectSource)?
    private var after = Seq.none
    /// The cut that a rest continues; nil for a snapshot or delta.
    private let cut: SnapshotCut?
    var named: [Site] = []
    private var isUsed: [Bool] = []
    /// The number of lines that were read, including the first.
    private var lines: Int64 = 0
    private var lastSite = -1
    var lastKey: [UInt8] = []
    /// The storage of the next key.
    var nextKey: [UInt8] = []
    /// The names of the fields of the last object. The next object shares those that are equal.
    var fieldNames: [[UInt8]] = []

    /// Creates a reader of a snapshot. The result is a new fold.
    ///
    /// - Parameters:
    ///   - listsChanges: see `Fold.init`.
    ///   - source: an empty source to which the caller writes the rows as they are read; nil: all objects stay in
    ///     memory.
    public init(listsChanges: Bool = false, source: (any ObjectSource)? = nil) {
        isDelta = false
        cut = nil
        self.listsChanges = listsChanges
        self.source = source
    }

    /// Creates a reader of a delta to `fold`. The result is a new fold; `fold` itself does not change.
    ///
    /// With a `cut`, it is a reader of the rest of an answer that was cut there. `fold` then contains the lines of that
    /// answer up to the cut, and beyond it what the reader had before that answer.
    public init(onto fold: Fold, beyond cut: SnapshotCut? = nil) {
        self.fold = fold
        self.cut = cut
        isDelta = true
        listsChanges = fold.listsChanges
        source = fold.source
    }

    /// Reads one line, without its line feed.
    public mutating func read(line: Bytes) throws(ReelError) {
        defer { lines += 1 }
        do throws(ReelError) {
            var reader = CanonicalReader(line, code: .badFrame)
            try reader.expect(ASCII.openBrace)
            var last = Slice(start: 0, count: 0)
            guard let key = try reader.nextKey(&last) else { throw reader.error("found an empty line") }
            switch reader.bytes(key) {
            case "after" where step == .first: try readFirst(&reader, &last)
            case "by" where step == .sites: try readSite(by: reader.name("by"), &reader, &last)
            case "end" where step == .sites: try readSite(by: nil, &reader, &last)
            case "fields" where step == .sites || step == .objects: try readObject(&reader, &last)
            case "deleted" where step != .first && step != .done: try readTombstone(&reader, &last)
            case "count" where step != .first && step != .done: try readLast(&reader, &last)
            default: throw reader.error("found the member \"\(JSONText(reader.bytes(key)).string)\" out of its place")
            }
            if let key = try reader.nextKey(&last) { throw reader.unknown(key) }
            try reader.end()
        } catch {
            var error = error
            error.message = "line \(lines + 1) of a snapshot: \(error.message)"
            throw error
        }
    }

    /// The number of rows that were read and that the caller has not taken; 0 without a source.
    public var unwrittenCount: Int { fold?.unwrittenCount ?? 0 }

    /// The key of the last object that was read; nil before the first object and from the first tombstone on.
    public var lastObjectKey: [UInt8]? { step == .objects ? lastKey : nil }

    /// Calls `body` with the part of the fold that was read, so that the caller can write its rows to the source. Does
    /// nothing before the first line of a snapshot.
    public mutating func withFold(_ body: (inout Fold) throws(ReelError) -> Void) throws(ReelError) {
        guard var fold = fold.take() else { return }
        defer { self.fold = fold }
        try body(&fold)
    }

    /// Returns the fold after the last line. Throws `bad_frame` if the last line has not been read.
    public consuming func finish() throws(ReelError) -> Fold {
        guard step == .done, let fold else {
            throw ReelError(.badFrame, "found \(lines) lines of a snapshot and no last one, expected more")
        }
        return fold
    }

    // MARK: First and last line

    private mutating func readFirst(_ reader: inout CanonicalReader, _ last: inout Slice) throws(ReelError) {
        after = try reader.integer(from: -1)
        if let cut { try expect(cut, &reader, &last) }
        try reader.expect("consumed", &last)
        let consumed = try reader.integer()
        try reader.expect("epoch", &last)
        let epoch = try reader.epoch()
        try reader.expect("fold", &last)
        let version = try reader.integer()
        guard version == Fold.version else {
            throw reader.error("found fold version \(version), expected \(Fold.version)")
        }
        try reader.expect("marks", &last)
        let marks = try reader.seqs()
        guard Int64(marks.count) == min(consumed / Limits.markEvery, Int64(Limits.marks)) else {
            throw reader.error("found \(marks.count) marks of \(consumed) consumed events")
        }
        guard var key = try reader.nextKey(&last) else { throw reader.missing("partition") }
        var next: Epoch?
        if "next" ~= reader.bytes(key) {
            next = try reader.epoch()
            guard let behind = try reader.nextKey(&last) else { throw reader.missing("partition") }
            key = behind
        }
        guard "partition" ~= reader.bytes(key) else { throw reader.unknown(key) }
        let partition = Int(try reader.integer())
        guard var following = try reader.nextKey(&last) else { throw reader.missing("seq") }
        var retired = Seq.none
        if "retired" ~= reader.bytes(following) {
            retired = try reader.integer()
            guard let behind = try reader.nextKey(&last) else { throw reader.missing("seq") }
            following = behind
        }
        guard "seq" ~= reader.bytes(following) else { throw reader.unknown(following) }
        let seq = try reader.integer(from: -1)
        guard retired <= seq else { throw reader.error("found \"retired\" \(retired) beyond the last seq, \(seq)") }
        guard marks.last ?? .none <= seq else { throw reader.error("found a mark after the last seq, \(seq)") }
        try reader.expect("sites", &last)
        named = try reader.sites()
        isUsed = Array(repeating: false, count: named.count)
        try reader.expect("stream", &last)
        let name = reader.bytes(try reader.text())
        guard let stream = StreamName(bytes: name) else { throw reader.error("found a name that no stream has") }

        if isDelta { try checkFit(stream: stream, partition: partition, epoch: epoch, seq: seq) }
        guard isDelta == (after > .none) else {
            throw reader.error(
                "found a \(isDelta ? "snapshot" : "delta") where a \(isDelta ? "delta" : "snapshot") was expected"
            )
        }
        var fold =
            self.fold
            ?? Fold(stream: stream, partition: partition, epoch: epoch, listsChanges: listsChanges, source: source)
        self.fold = nil
        fold.consumed = consumed
        fold.marks = marks
        fold.next = next
        fold.retired = retired
        fold.seq = seq
        self.fold = fold
        step = .sites
    }

    /// Reads the member `beyond` of a rest: `[model, id, seq]`, which must name the cut.
    private func expect(
        _ cut: SnapshotCut,
        _ reader: inout CanonicalReader,
        _ last: inout Slice
    ) throws(ReelError) {
        try reader.expect("beyond", &last)
        try reader.expect(ASCII.openBracket)
        let model = reader.bytes(try reader.name("a model"))
        try reader.expect(ASCII.comma)
        let id = reader.bytes(try reader.name("an id"))
        try reader.expect(ASCII.comma)
        let seq = try reader.integer(from: -1)
        try reader.expect(ASCII.closeBracket)
        guard seq == cut.beyond, cut.key == model + [0] + id else {
            throw reader.error("found the rest of an answer that was cut at another place, or held as of another seq")
        }
    }

    private func checkFit(stream: StreamName, partition: Int, epoch: Epoch, seq: Seq) throws(ReelError) {
        guard let fold else { return }
        guard stream == fold.stream, partition == fold.partition else {
            throw ReelError(
                .badFrame,
                "found a delta of \(stream) in partition \(partition), expected \(fold.stream) in \(fold.partition)"
            )
        }
        guard epoch == fold.epoch else {
            throw ReelError(.epochChanged, "found a delta of epoch \(epoch), expected \(fold.epoch)")
        }
        guard after <= fold.seq, fold.seq <= seq else {
            throw ReelError(
                .badRange,
                "found a delta from seq \(after) to \(seq), expected one that fits seq \(fold.seq)"
            )
        }
    }

    private mutating func readLast(_ reader: inout CanonicalReader, _ last: inout Slice) throws(ReelError) {
        let count = try reader.integer()
        guard count == lines - 1 else { throw reader.error("found a count of \(count) after \(lines - 1) lines") }
        try reader.expect("digest", &last)
        let text = reader.bytes(try reader.text())
        guard let digest = Hex64.parse(text) else { throw reader.error("found no digest of 16 hex digits") }
        try reader.expect("end", &last)
        try reader.literal("true")
        if let unused = isUsed.firstIndex(of: false) {
            throw reader.error("found the site \(named[unused]) in the first line, and no line that names it")
        }
        fold?.agingObjects.sort()
        fold?.agingSites.sort()
        fold?.forget()
        if let count = fold?.lostCount, count > Limits.lostPerStream {
            throw reader.error("found \(count) lost texts, expected at most \(Limits.lostPerStream)")
        }
        let found = fold?.digest() ?? 0
        guard found == digest else {
            throw ReelError(
                .diverged,
                "found a state of digest \(Hex64.text(found)), expected \(Hex64.text(digest))"
            )
        }
        step = .done
    }

    // MARK: Sites

    private mutating func readSite(by: Slice?, _ reader: inout CanonicalReader, _ last: inout Slice) throws(ReelError) {
        if by != nil { try reader.expect("end", &last) }
        let end = try reader.integer(from: -1)
        var lost = LostTexts()
        guard let key = try reader.nextKey(&last) else { throw reader.missing("op") }
        if "lost" ~= reader.bytes(key) {
            lost = try readLost(&reader)
            try reader.expect("op", &last)
        } else if !("op" ~= reader.bytes(key)) {
            throw reader.unknown(key)
        }
        let op = try reader.integer()
        try reader.expect("r", &last)
        lost.all = try reader.integer(from: -1)
        try reader.expect("seq", &last)
        let seq = try reader.integer()
        try check(max(seq, end), &reader)
        try reader.expect("site", &last)
        let number = try readNumber(&reader)
        guard number > lastSite else { throw reader.error("found sites that are not in order") }
        guard end == .none || end >= seq, lost.all <= seq, lost.fields.allSatisfy({ $0.seq <= seq }) else {
            throw reader.error("found \"end\" before, or \"r\" or \"lost\" beyond the last seq of a site, \(seq)")
        }
        lastSite = number
        fold?.set(
            named[number],
            by: by.map { reader.bytes($0) },
            op: op,
            seq: seq,
            lost: lost,
            end: end
        )
    }

    /// Reads the lost texts of a site: `[[model, id, field, seq], …]`, ordered by bytes.
    private func readLost(_ reader: inout CanonicalReader) throws(ReelError) -> LostTexts {
        var lost = LostTexts()
        var isFirst = true
        let horizon = fold?.horizon ?? .none
        try reader.expect(ASCII.openBracket)
        while try reader.nextElement(&isFirst) {
            try reader.expect(ASCII.openBracket)
            let model = reader.bytes(try reader.name("a model"))
            try reader.expect(ASCII.comma)
            let id = reader.bytes(try reader.name("an id"))
            try reader.expect(ASCII.comma)
            let name = reader.bytes(try reader.name("a field's name"))
            try reader.expect(ASCII.comma)
            let seq = try reader.integer()
            try reader.expect(ASCII.closeBracket)
            guard seq > horizon else {
                throw reader.error("found a lost text at seq \(seq), expected one above the horizon, \(horizon)")
            }
            guard lost.append(model: model, id: id, name: name, seq: seq) else {
                throw reader.error("found lost texts that are not in order")
            }
        }
        guard (1...Limits.lostPerSite).contains(lost.count) else {
            throw reader.error("found \(lost.count) lost texts of a site, expected 1 to \(Limits.lostPerSite)")
        }
        return lost
    }

    /// Reads an index into the sites of the first line.
    mutating func readNumber(_ reader: inout CanonicalReader) throws(ReelError) -> Int {
        let number = Int(try reader.integer())
        guard number < named.count else {
            throw reader.error("found site number \(number), expected less than \(named.count)")
        }
        isUsed[number] = true
        return number
    }

    /// Reads the seq of an object or tombstone. It is greater than `after`, or beyond a cut greater than the seq of the
    /// cut, and at most the seq of the whole snapshot.
    func readSeq(_ reader: inout CanonicalReader) throws(ReelError) -> Seq {
        let seq = try reader.integer()
        guard let cut, step == .tombstones || cut.isPassed(by: lastKey) else {
            try check(seq, &reader)
            return seq
        }
        try check(seq, after: cut.beyond, &reader)
        return seq
    }

    private func check(_ seq: Seq, after: Seq? = nil, _ reader: inout CanonicalReader) throws(ReelError) {
        let after = after ?? self.after
        guard seq > after, seq <= fold?.seq ?? .none else {
            throw reader.error("found seq \(seq), expected one after \(after) and up to \(fold?.seq ?? .none)")
        }
    }
}

extension CanonicalReader {
    /// Advances to the value of the member `name`, which must be the next one.
    mutating func expect(_ name: StaticString, _ last: inout Slice) throws(ReelError) {
        guard let key = try nextKey(&last) else { throw missing(name) }
        guard name ~= bytes(key) else { throw unknown(key) }
    }

    fileprivate mutating func epoch() throws(ReelError) -> Epoch {
        guard let epoch = Epoch(bytes: bytes(try text())) else {
            throw error("found no epoch of 16 hex digits")
        }
        return epoch
    }

    /// Reads an array of ascending seqs.
    fileprivate mutating func seqs() throws(ReelError) -> [Seq] {
        var seqs: [Seq] = []
        var isFirst = true
        try expect(ASCII.openBracket)
        while try nextElement(&isFirst) {
            let seq = try integer()
            guard seq > seqs.last ?? .none else { throw error("found marks that do not rise") }
            seqs.append(seq)
        }
        return seqs
    }

    /// Reads an array of sites in ascending order.
    fileprivate mutating func sites() throws(ReelError) -> [Site] {
        var sites: [Site] = []
        var isFirst = true
        try expect(ASCII.openBracket)
        while try nextElement(&isFirst) {
            let site = try site()
            if let last = sites.last, last >= site { throw error("found sites that are not in order") }
            sites.append(site)
        }
        return sites
    }
}
