/// Goes through one history and holds every line against the log.
struct HistoryWalk {
    /// What several histories have to be asked together.
    struct Result: Sendable {
        var findings = Findings()
        /// By stream and site: the highest op handed over, and whether all that was handed over is known.
        var sent: [SiteKey: Int64] = [:]
        /// By epoch, stream and site: the highest op that was acked, where it was said to be, and by which line.
        var acked: [AckKey: (op: Int64, seq: Int64, line: Int)] = [:]
        /// By epoch and stream: the highest seq that was acked, with when, on the wall's clock.
        var ackedHeads: [StreamKey: [(wall: Int64, seq: Int64)]] = [:]
        /// How far a reader was when it ended.
        var reached: [StreamKey: (seq: Int64, line: Int)] = [:]
        /// Streams of which a reader was told nothing until it ended, and by which line.
        var unreached: [Text: Int] = [:]
        var lines = 0
        var file = ""
        var who = ""
        var isWhole = false
        var endWall: Int64?
        var unacked: Int64 = 0
        var endLine = 0
        var unknownEpochs: Set<UInt64> = []
        var trouble: String?
    }

    struct SiteKey: Hashable, Sendable {
        let stream: Text
        let site: Site
    }

    struct StreamKey: Hashable, Sendable {
        let epoch: UInt64
        let stream: Text
    }

    struct AckKey: Hashable, Sendable {
        let epoch: UInt64
        let key: SiteKey
    }

    /// A stream in one epoch, as this party knows it.
    final class View {
        let partition: LoggedPartition?
        /// The stream's number in its partition.
        let number: Int32
        /// The partition's number, as the present subscription says it.
        var partitionNumber: Int64?
        var covered = Coverage()
        /// Seqs at or below were not asked for, or came as a snapshot; nil: nothing was asked for yet.
        var start: Int64?
        /// The last seq proven by the present subscription; nil: there is none.
        var proven: Int64?
        var isFiltered = false

        init(_ partition: LoggedPartition?, _ number: Int32) {
            (self.partition, self.number) = (partition, number)
        }
    }

    let file: MappedFile
    let evidence: LogEvidence
    var result = Result()
    var sites: [Int64: Site] = [:]
    var views: [StreamKey: View] = [:]
    /// The epoch of the present connection; 0 before the first.
    var epoch: UInt64 = 0
    /// On this connection: the epoch in which a stream is subscribed, which may be a newer one.
    var epochs: [Text: UInt64] = [:]
    /// On this connection, by partition: the last head that was said.
    var heads: [Int64: Int64] = [:]
    /// On this connection: the last op acked of a site.
    var lastAcked: [SiteKey: Int64] = [:]
    /// On this connection: the last op handed over of a site, and from where on its events were handed over again, each
    /// of which may be acked in its own order.
    var handedOver: [SiteKey: (last: Int64, again: [Int64])] = [:]
    /// By node and partition: the last head.
    var nodeHeads: [String: Int64] = [:]
    private var wallOffset: Int64 = 0

    init(_ file: MappedFile, against evidence: LogEvidence) {
        self.file = file
        self.evidence = evidence
        result.file = file.name
        result.who = file.name
    }

    /// Reads all lines.
    mutating func run() -> Result {
        do throws(Fault) {
            try file.eachLine { (place) throws(Fault) in
                result.lines += 1
                do throws(Fault) {
                    if let line = try HistoryLine(file.bytes, place) { try take(line) }
                } catch {
                    throw Fault("\(error.reason), in \(file.quote(lineAt: place.lowerBound))")
                }
            }
            if file.isCut { result.isWhole = false }
        } catch {
            result.trouble = "\(file.name) cannot be read: \(error.reason)"
        }
        return result
    }

    private mutating func take(_ line: HistoryLine) throws(Fault) {
        if result.lines == 1 {
            guard line.kind == .begin else { throw Fault("a history does not begin with a line of begin") }
            wallOffset = (line.wall ?? 0) &- line.ms
            if let who = line.who { result.who = Text(LineReader(file.bytes, line.place).decoded(who)).string }
            return
        }
        switch line.kind {
        case .begin: throw Fault("a second beginning")
        case .connect:
            epoch = try line.required(line.epoch, "epoch")
            disconnected()
        case .disconnect: disconnected()
        case .site:
            let text = LineReader(file.bytes, line.place).decoded(try line.required(line.siteText, "site"))
            guard let site = Site(Text(text)) else { throw Fault("site is no UUID in lower case") }
            sites[try line.required(line.number, "n")] = site
        case .sent: try sent(line)
        case .ack: try acked(line)
        case .subscribed: try subscribed(line)
        case .events: try received(line)
        case .upto: try upto(line)
        case .lagged: try lagged(line)
        case .unsubscribed: view(try key(line)).proven = nil
        case .loaded: try loaded(line)
        case .reached: try reached(line)
        case .head: try head(line)
        case .end:
            result.isWhole = true
            result.endWall = wall(line)
            result.endLine = line.place.lowerBound
            result.unacked = try line.required(line.unacked, "unacked")
        case .nack, .state, .fault, .heal: break
        }
    }

    private mutating func disconnected() {
        for view in views.values { view.proven = nil }
        epochs = [:]
        heads = [:]
        lastAcked = [:]
        handedOver = [:]
    }

    // MARK: What every line needs

    func wall(_ line: HistoryLine) -> Int64 { line.ms &+ wallOffset }

    func quote(_ line: HistoryLine) -> String { file.quote(lineAt: line.place.lowerBound) }

    func site(_ number: Int64) throws(Fault) -> Site {
        guard let site = sites[number] else { throw Fault("no line of site says what \(number) is") }
        return site
    }

    func stream(_ line: HistoryLine) throws(Fault) -> Text {
        Text(LineReader(file.bytes, line.place).decoded(try line.required(line.stream, "stream")))
    }

    func key(_ line: HistoryLine) throws(Fault) -> StreamKey {
        let stream = try stream(line)
        return StreamKey(epoch: line.epoch ?? epochs[stream] ?? epoch, stream: stream)
    }

    /// The partition of a stream; nil, and noted, if there is no dump of the epoch.
    mutating func partition(_ key: StreamKey) -> LoggedPartition? {
        if let log = evidence.logs[key.epoch] { return log.partition(of: key.stream) }
        result.unknownEpochs.insert(key.epoch)
        return nil
    }

    /// What is known of a stream in an epoch.
    mutating func view(_ key: StreamKey) -> View {
        if let view = views[key] { return view }
        let partition = partition(key)
        let view = View(partition, partition?.number(of: key.stream) ?? -1)
        views[key] = view
        return view
    }

    /// Whether the dump speaks of a seq: below its begin it does not; beyond its end the log has nothing, unless the
    /// dump was cut.
    mutating func isJudgeable(_ seq: Int64, _ partition: LoggedPartition) -> Bool {
        if partition.isPartial, seq > partition.last {
            result.findings.unjudged("the dump could not be read that far")
            return false
        }
        if seq < partition.first {
            result.findings.unjudged("the dump begins behind it; add one that was taken before the log was trimmed")
            return false
        }
        if seq > partition.foldable {
            result.findings.unjudged("it lies behind a barrier that this judge does not know")
            return false
        }
        return true
    }
}

/// Seqs as sorted, disjoint ranges; nearly always they come in order.
struct Coverage {
    private var ranges: [ClosedRange<Int64>] = []

    mutating func insert(_ range: ClosedRange<Int64>) {
        var merged = range
        var index = ranges.count
        while index > 0, ranges[index - 1].lowerBound > range.upperBound + 1 { index -= 1 }
        var low = index
        while low > 0, ranges[low - 1].upperBound >= range.lowerBound - 1 {
            low -= 1
            merged = min(merged.lowerBound, ranges[low].lowerBound)...max(merged.upperBound, ranges[low].upperBound)
        }
        ranges.replaceSubrange(low..<index, with: CollectionOfOne(merged))
    }

    /// The last seq of the unbroken run that begins right behind this one.
    func contiguous(after seq: Int64) -> Int64 {
        ranges.first { $0.lowerBound <= seq + 1 && $0.upperBound > seq }?.upperBound ?? seq
    }
}
