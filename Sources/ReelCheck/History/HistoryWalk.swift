/// Goes through one history and holds every line against the log.
struct HistoryWalk {
    /// What several histories have to be asked together.
    struct Result: Sendable {
        var findings = Findings()
        /// By stream and site: the ops that were handed over.
        var sent: [SiteKey: Coverage] = [:]
        /// By epoch, stream and site: the highest op that was acked, where it was said to be, and by which line.
        var acked: [AckKey: (op: Int64, seq: Int64, line: Int)] = [:]
        /// By epoch and stream: the highest seq that was acked and not printed as lost, with when, on the wall's clock.
        var ackedHeads: [StreamKey: [(wall: Int64, seq: Int64)]] = [:]
        /// By stream: in which epoch a reader was when it ended, and how far.
        var reached: [Text: (epoch: UInt64, seq: Int64, line: Int)] = [:]
        /// Streams of which a reader was told nothing until it ended, and by which line.
        var unreached: [Text: Int] = [:]
        var lines = 0
        var file = ""
        var who = ""
        /// It has its end, behind which the party did nothing.
        var isWhole = false
        /// Lines are missing: a client did not come to its end, or a line did not come to its own.
        var isCut = false
        var endWall: Int64?
        var unacked: Int64 = 0
        /// Sites that the party has given up for others.
        var left: Set<SiteKey> = []
        /// Acks of what was printed as lost.
        var printedAsLost = 0
        var endLine = 0
        /// Epochs without a dump, and where each is first spoken of.
        var unknownEpochs: [UInt64: String] = [:]
        /// A subscription went over events of the log.
        var isOwedEvents = false
        /// How many events arrived.
        var arrived = 0
        var trouble: String?
        /// Where lines contradict each other, so that some are missing.
        var doubts: [String] = []
    }

    struct SiteKey: Hashable, Sendable {
        let stream: Text
        let site: Site
    }

    struct StreamKey: Hashable, Sendable {
        let epoch: UInt64
        let stream: Text
    }

    struct PartitionKey: Hashable, Sendable {
        let epoch: UInt64
        let partition: Int64
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

        /// The log has something of the stream that was to come.
        var isOwedEvents: Bool {
            guard let partition, let start, !isFiltered, partition.last > start else { return false }
            return partition.count(number, in: start + 1...partition.last) > 0
        }

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
    /// On this connection, by epoch and partition: the last head that was said.
    var heads: [PartitionKey: Int64] = [:]
    /// On this connection: the last op acked of a site.
    var lastAcked: [SiteKey: Int64] = [:]
    /// On this connection: the last op handed over of a site, and from where on its events were handed over again, each
    /// of which may be acked in its own order.
    var handedOver: [SiteKey: (last: Int64, again: [Int64])] = [:]
    /// By node and partition: the last head.
    var nodeHeads: [String: Int64] = [:]
    /// By stream and site: the ops that were acked, or refused for good.
    var settled: [SiteKey: Coverage] = [:]
    /// Streams that were subscribed last and not ended as was asked, and by which line.
    var subscriptions: [Text: Int] = [:]
    /// Streams of which it was said how far the party is.
    var told: Set<Text> = []
    /// Where the line stands that is looked at.
    private var start = 0
    private var wallOffset: Int64 = 0
    /// Nodes and drivers have no end to write, if they neither publish nor listen.
    var mustEnd = true

    /// The version of the format, as docs/reference/history.md says it.
    private static let version: Int64 = 1

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
                    start = place.lowerBound
                    try take(try HistoryLine(file.bytes, place))
                } catch {
                    throw Fault("\(error.reason), in \(file.quote(lineAt: place.lowerBound))")
                }
            }
            if file.isCut { result.isWhole = false }
            result.isCut = file.isCut || mustEnd && !result.isWhole
        } catch {
            result.isWhole = false
            result.trouble = HistoryFile.trouble(file, error)
        }
        result.isOwedEvents = views.values.contains(where: \.isOwedEvents)
        return result
    }

    private mutating func take(_ line: HistoryLine) throws(Fault) {
        if result.lines == 1 {
            try begun(line)
            return
        }
        guard !result.isWhole else { throw Fault("a line follows the line of end") }
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
        case .nack: try nacked(line)
        case .left: try left(line)
        case .subscribed: try subscribed(line)
        case .events: try received(line)
        case .upto: try upto(line)
        case .lagged: try lagged(line)
        case .unsubscribed:
            subscriptions[try stream(line)] = nil
            view(try key(line)).proven = nil
        case .state: _ = partition(StreamKey(epoch: try line.required(line.epoch, "epoch"), stream: try stream(line)))
        case .loaded: try loaded(line)
        case .reached: try reached(line)
        case .head: try head(line)
        case .end: try ended(line)
        case .fault, .heal: break
        }
    }

    private mutating func begun(_ line: HistoryLine) throws(Fault) {
        guard line.kind == .begin else { throw Fault("a history does not begin with a line of begin") }
        let version = try line.required(line.history, "history")
        guard version == Self.version else {
            throw Fault("history \(version) is a format that is not known, expected is \(Self.version)")
        }
        wallOffset = try line.required(line.wall, "wall") &- line.ms
        let reader = LineReader(file.bytes, line.place)
        result.who = Text(reader.decoded(try line.required(line.who, "who"))).string
        let party = Text(reader.decoded(try line.required(line.party, "kind"))).string
        guard ["client", "node", "driver"].contains(party) else {
            throw Fault("`\(party.prefix(40))` is no kind of party, expected is client, node or driver")
        }
        mustEnd = party == "client"
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

    func quote(_ line: HistoryLine) -> Quote { file.quote(lineAt: line.place.lowerBound) }

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
        isUnknown(key.epoch)
        return nil
    }

    /// There is no dump of the epoch that the line is about.
    mutating func isUnknown(_ epoch: UInt64) {
        if result.unknownEpochs[epoch] == nil { result.unknownEpochs[epoch] = file.place(lineAt: start) }
    }

    /// What is known of a stream in an epoch.
    mutating func view(_ key: StreamKey) -> View {
        if let view = views[key] { return view }
        let partition = partition(key)
        let view = View(partition, partition?.number(of: key.stream) ?? -1)
        views[key] = view
        return view
    }

    /// Whether the dump speaks of a seq; if not, it is noted why. What was printed as lost need not be there.
    mutating func isJudgeable(_ seq: Int64, _ partition: LoggedPartition) -> Bool {
        if seq > partition.last, partition.isPrintedAsLost(seq) { return false }
        guard let reason = partition.reasonNotToJudge(seq) else { return true }
        unjudged(reason)
        return false
    }

    /// The line that is looked at says something that cannot be judged.
    mutating func unjudged(_ reason: String) {
        let (file, start) = (file, start)
        result.findings.unjudged(reason, at: file.place(lineAt: start))
    }
}
