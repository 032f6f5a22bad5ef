/// Reads one history, and compares every line with the log.
struct HistoryWalk {
    /// The facts of one history that the checks over several histories need.
    struct Result: Sendable {
        var findings = Findings()
        /// The ops that were sent, by stream and site.
        var sent: [SiteKey: Coverage] = [:]
        /// By epoch, stream and site: the highest op that was acked, its reported seq, and the offset of the line.
        var acked: [AckKey: (op: Int64, seq: Int64, line: Int)] = [:]
        /// By epoch and stream: the highest seq of each ack that was not printed as lost, with its time on the wall
        /// clock.
        var ackedHeads: [StreamKey: [(wall: Int64, seq: Int64)]] = [:]
        /// By stream: the epoch and the seq that a reader had reached at its end.
        var reached: [Text: (epoch: UInt64, seq: Int64, line: Int)] = [:]
        /// The streams of which a reader received nothing until its end, with the offset of the line.
        var unreached: [Text: Int] = [:]
        var lines = 0
        var file = ""
        var who = ""
        /// True if the history has an `end` line, after which the party did nothing.
        var isWhole = false
        /// True if lines are missing: a client has no `end` line, or the last line is incomplete.
        var isCut = false
        var endWall: Int64?
        var unacked: Int64 = 0
        /// The sites that the party has replaced by others.
        var left: Set<SiteKey> = []
        /// The number of acks of events that were printed as lost.
        var printedAsLost = 0
        var endLine = 0
        /// The epochs without a dump, with the place that mentions each first.
        var unknownEpochs: [UInt64: String] = [:]
        /// True if a subscription covered events of the log.
        var isOwedEvents = false
        /// The number of events that arrived.
        var arrived = 0
        var trouble: String?
        /// Contradictions between lines, which show that lines are missing.
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

    /// A stream in one epoch, from the view of this party.
    final class View {
        let partition: LoggedPartition?
        /// The stream's number in its partition.
        let number: Int32
        /// The partition's number according to the current subscription.
        var partitionNumber: Int64?
        var covered = Coverage()
        /// Seqs at or below this one were not requested, or were delivered as a snapshot; nil if nothing was requested
        /// yet.
        var start: Int64?
        /// The last seq that the current subscription has proven; nil if there is no subscription.
        var proven: Int64?
        var isFiltered = false

        /// True if the log has an event of the stream that should have arrived.
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
    /// The epoch of the current connection; 0 before the first.
    var epoch: UInt64 = 0
    /// On this connection: the epoch in which a stream is subscribed, which may be a newer one.
    var epochs: [Text: UInt64] = [:]
    /// On this connection, by epoch and partition: the last reported head.
    var heads: [PartitionKey: Int64] = [:]
    /// On this connection: the last acked op of each site.
    var lastAcked: [SiteKey: Int64] = [:]
    /// On this connection, by site: `last` is the highest op that was sent. `again` holds the first op of each group of
    /// events that was sent again; acks may restart once for each group.
    var handedOver: [SiteKey: (last: Int64, again: [Int64])] = [:]
    /// By node and partition: the last head.
    var nodeHeads: [String: Int64] = [:]
    /// By stream and site: the ops that were acked, or refused permanently.
    var settled: [SiteKey: Coverage] = [:]
    /// The streams with a subscription that was not ended by request, with the offset of the last `subscribed` line.
    var subscriptions: [Text: Int] = [:]
    /// The streams with a line of `reached`.
    var told: Set<Text> = []
    /// The offset of the current line.
    private var start = 0
    private var wallOffset: Int64 = 0
    /// True if the history must have an `end` line. Nodes and drivers need none if they neither publish nor subscribe.
    var mustEnd = true

    /// The version of the format of docs/reference/history.md.
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

    // MARK: Values that every line needs

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

    /// Returns the partition of a stream. Returns nil, and notes the epoch, if there is no dump of the epoch.
    mutating func partition(_ key: StreamKey) -> LoggedPartition? {
        if let log = evidence.logs[key.epoch] { return log.partition(of: key.stream) }
        isUnknown(key.epoch)
        return nil
    }

    /// Notes that there is no dump of the epoch that the current line mentions.
    mutating func isUnknown(_ epoch: UInt64) {
        if result.unknownEpochs[epoch] == nil { result.unknownEpochs[epoch] = file.place(lineAt: start) }
    }

    /// Returns the view of a stream in an epoch; creates it if necessary.
    mutating func view(_ key: StreamKey) -> View {
        if let view = views[key] { return view }
        let partition = partition(key)
        let view = View(partition, partition?.number(of: key.stream) ?? -1)
        views[key] = view
        return view
    }

    /// True if the dump contains the seq, so that it can be checked. Otherwise the reason is noted, unless the seq was
    /// printed as lost.
    mutating func isJudgeable(_ seq: Int64, _ partition: LoggedPartition) -> Bool {
        if seq > partition.last, partition.isPrintedAsLost(seq) { return false }
        guard let reason = partition.reasonNotToJudge(seq) else { return true }
        unjudged(reason)
        return false
    }

    /// Notes that the current line contains a fact that cannot be checked.
    mutating func unjudged(_ reason: String) {
        let (file, start) = (file, start)
        result.findings.unjudged(reason, at: file.place(lineAt: start))
    }
}
