internal import ReelBase
internal import ReelClient
internal import ReelCore

/// A node in memory: one log with one partition, and the sessions of its clients. Pure: it gets frames and requests,
/// and returns answers.
struct TestNode: Sendable {
    /// The site and op of an event.
    struct Author: Hashable, Sendable {
        var site: Site
        var op: Op
    }

    /// A record of the log. Its seq is its index.
    struct Record: Sendable {
        var stream: StreamName
        var value: [UInt8]
        var author: Author
        var device: String
        var outcome: Outcome
    }

    /// A stream of the log.
    struct Stream: Sendable {
        var fold: Fold
        /// The seqs of the stream's records, ascending.
        var seqs: [Seq] = []
        /// The seq of each consumed event.
        var consumed: [Author: Seq] = [:]
    }

    /// A connection after its `hello`.
    struct Session: Sendable {
        let device: String
        /// The subject of the token; nil: none.
        var user: String?
        /// The last proven seq of each subscription.
        var proven: [StreamName: Seq] = [:]
        /// The first refused op of each site in each stream. Later ops must wait for it, or they would be a gap.
        var refused: [StreamName: [Site: Op]] = [:]
    }

    /// An answer to a connection.
    enum Answer: Sendable {
        case frame(ServerFrame, to: Int)
        case close(Int, reason: String)
    }

    static let name = "http://node"
    static let epoch = Epoch(1)
    static let eventBytesMax = 256 << 10
    /// The lifetime that the node gives to each token, in seconds.
    static let tokenSeconds = 3_600
    private static let eventsPerFrame = 500

    private(set) var records: [Record] = []
    private(set) var streams: [StreamName: Stream] = [:]
    private var sessions: [Int: Session] = [:]
    var refusals: [TestRefusal] = []
    private var rules = PartitionRules(partition: 0, of: 1, phase: .open)
    private var event = ParsedEvent()

    var head: Seq { Seq(records.count) - 1 }

    /// Returns the error for a request; nil: the node accepts it.
    func refusal(of requests: TestRequests, by device: String) -> ReelError? {
        refusals.first { $0.requests == requests && $0.concerns(device) }?.error
    }

    /// Removes refusals, and returns them.
    mutating func takeRefusals(_ isEnded: (TestRefusal) -> Bool) -> [TestRefusal] {
        defer { refusals.removeAll(where: isEnded) }
        return refusals.filter(isEnded)
    }

    // MARK: Connections

    mutating func disconnected(_ connection: Int) { sessions[connection] = nil }

    /// Handles a frame of a connection.
    ///
    /// - Parameters:
    ///   - frame: the frame.
    ///   - connection: the number of the connection.
    ///   - device: the device that has the connection.
    ///   - atMs: the time, in milliseconds since 1970.
    /// - Returns: The answers to all connections, in order.
    mutating func receive(_ frame: ClientFrame, on connection: Int, of device: String, atMs: Int64) -> [Answer] {
        switch frame.body {
        case .hello(let hello):
            if let error = refusal(of: .connections, by: device) {
                let reason = "closed with \(error.code.entry.close ?? 1008)"
                return [.frame(Self.failed(error), to: connection), .close(connection, reason: reason)]
            }
            sessions[connection] = Session(device: device, user: hello.token.flatMap(TokenSubject.read))
            return [welcome(hello.token, connection)]
        case .renew(let token):
            if let error = refusal(of: .connections, by: device) {
                return [.frame(Self.failed(error), to: connection)]
            }
            sessions[connection]?.user = TokenSubject.read(token)
            return [welcome(token, connection)]
        case .subscribe(let subscribe): return subscribed([subscribe], connection, frame.ref)
        case .subscribeAll(let subscribes): return subscribed(subscribes, connection, frame.ref)
        case .unsubscribe(let stream):
            sessions[connection]?.proven[stream] = nil
            return [.frame(ServerFrame(.unsubscribed(stream), ref: frame.ref), to: connection)]
        case .fetch(let fetch):
            guard let session = sessions[connection] else { return [] }
            if let error = refusal(of: .reads, by: session.device) {
                return [.frame(Self.failed(error, fetch.stream, ref: frame.ref), to: connection)]
            }
            return fetch.ranges.flatMap { range in
                frames(fetch.stream, range.lowerBound, range.upperBound, frame.ref).map { .frame($0, to: connection) }
            }
        case .publish(let publish): return published(publish, connection, frame.ref, atMs)
        }
    }

    private static func failed(_ error: ReelError, _ stream: StreamName? = nil, ref: [UInt8]? = nil) -> ServerFrame {
        ServerFrame(.error(ServerFrame.Failure(error, stream: stream)), ref: ref)
    }

    private func welcome(_ token: String?, _ connection: Int) -> Answer {
        let welcome = ServerFrame.Welcome(
            node: Self.name,
            epoch: Self.epoch,
            number: 0,
            deployment: Deployment(1),
            partitions: 1,
            limits: .init(
                frame: 1 << 20,
                event: Self.eventBytesMax,
                batch: 50,
                subscriptions: 1_000,
                subscribe: ClientFrame.subscribeStreams,
                fetch: 100_000
            ),
            pingS: 20,
            tokenS: token.map { _ in Self.tokenSeconds }
        )
        return .frame(ServerFrame(.welcome(welcome)), to: connection)
    }

    private mutating func subscribed(
        _ subscribes: [ClientFrame.Subscribe],
        _ connection: Int,
        _ ref: [UInt8]?
    ) -> [Answer] {
        guard let device = sessions[connection]?.device else { return [] }
        let head = head
        var answers: [Answer] = []
        for subscribe in subscribes {
            var after = head
            if case .after(let seq) = subscribe.position { after = seq }
            var error = refusal(of: .reads, by: device)
            if after > head { error = ReelError(.aheadOfLog, "found seq \(after), expected at most \(head)") }
            if let error {
                answers.append(.frame(Self.failed(error, subscribe.stream, ref: ref), to: connection))
                continue
            }
            let subscribed = ServerFrame.Subscribed(
                stream: subscribe.stream,
                epoch: Self.epoch,
                partition: 0,
                first: head < 0 ? -1 : 0,
                head: head,
                after: after
            )
            answers.append(.frame(ServerFrame(.subscribed(subscribed), ref: ref), to: connection))
            answers += frames(subscribe.stream, after + 1, head).map { .frame($0, to: connection) }
            sessions[connection]?.proven[subscribe.stream] = head
        }
        return answers
    }

    /// Returns the frames with the events of a stream in a range.
    private func frames(_ stream: StreamName, _ from: Seq, _ to: Seq, _ ref: [UInt8]? = nil) -> [ServerFrame] {
        var (frames, from, to): ([ServerFrame], Seq, Seq) = ([], max(0, from), min(to, head))
        while from <= to {
            let events = events(of: stream, from, to, max: Self.eventsPerFrame)
            frames.append(ServerFrame(.events(events), ref: ref))
            from = events.to + 1
        }
        return frames
    }

    /// Returns the events of a stream in a range. The range ends earlier if there are more than `max` events.
    func events(of stream: StreamName, _ from: Seq, _ to: Seq, max: Int) -> ServerFrame.Events {
        let all = streams[stream]?.seqs ?? []
        let seqs = all[Self.index(of: from, in: all)...].prefix { $0 <= to }.prefix(max + 1)
        let last = seqs.count > max ? seqs[seqs.startIndex + max - 1] : Swift.max(to, from - 1)
        let events = seqs.prefix(max).map { DeliveredEvent(seq: $0, value: records[Int($0)].value) }
        return ServerFrame.Events(stream: stream, from: from, to: last, events: Array(events))
    }

    /// Returns the index of the first seq that is not before `seq`.
    private static func index(of seq: Seq, in seqs: [Seq]) -> Int {
        seqs.partitioningIndex { $0 < seq }
    }

    // MARK: Events

    /// Takes the events of a publish, all or none.
    private mutating func published(
        _ publish: ClientFrame.Publish,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ atMs: Int64
    ) -> [Answer] {
        guard let session = sessions[connection] else { return [] }
        var offers = publish.events.compactMap { offer($0, session, atMs) }
        var behind = session.refused[publish.stream] ?? [:]
        for index in offers.indices where offers[index].refusal == nil {
            let (author, value) = (offers[index].author, offers[index].value)
            if let first = behind[author.site], !isConsumed(Author(site: author.site, op: first), publish.stream) {
                if author.op == first { behind[author.site] = nil }
                if author.op > first { offers[index].refusal = .behind(first) }
            }
            if offers[index].refusal == nil { offers[index].refusal = conflict(value, author, publish.stream) }
        }
        if offers.count < publish.events.count || offers.contains(where: { $0.refusal != nil }) {
            return refuse(offers, of: publish.stream, connection, ref)
        }
        var acks: [ServerFrame.Acked] = []
        for offer in offers {
            append(offer.value, offer.author, publish.stream, from: session.device)
            acks.append(.init(site: offer.author.site, op: offer.author.op, seq: head))
        }
        sessions[connection]?.refused[publish.stream] = behind
        let ack = ServerFrame.Ack(stream: publish.stream, epoch: Self.epoch, acks: acks)
        return [.frame(ServerFrame(.ack(ack)), to: connection)] + pushes()
    }

    /// An event of a publish.
    private struct Offer {
        var value: [UInt8] = []
        var author: Author
        /// The reason why the node does not take the event; nil: it can.
        var refusal: ReelError?
    }

    /// Reads an event of a publish; nil if it does not even name a site and an op.
    private func offer(_ bytes: [UInt8], _ session: Session, _ atMs: Int64) -> Offer? {
        do throws(ReelError) {
            let (value, author) = try stamped(bytes, session.user, atMs)
            return Offer(value: value, author: author, refusal: refusal(of: .writes, by: session.device))
        } catch {
            let author = bytes.withUnsafeBytes { EventIntake.author(of: $0) }
            return author.map { Offer(author: Author(site: $0.site, op: $0.op), refusal: error) }
        }
    }

    private mutating func refuse(
        _ offers: [Offer],
        of stream: StreamName,
        _ connection: Int,
        _ ref: [UInt8]?
    ) -> [Answer] {
        offers.map { offer in
            let (site, op) = (offer.author.site, offer.author.op)
            let error = offer.refusal ?? ReelError(.gap, "another event of the same publish was refused", retryMs: 0)
            // The log already has an event at the op of a conflict: later ops miss nothing.
            if error.code != .conflict {
                let first = sessions[connection]?.refused[stream]?[site] ?? op
                let isPast = isConsumed(Author(site: site, op: first), stream)
                sessions[connection]?.refused[stream, default: [:]][site] = isPast ? op : min(first, op)
            }
            let nack = ServerFrame.Nack(stream: stream, site: site, op: op, error: error)
            return .frame(ServerFrame(.nack(nack), ref: ref), to: connection)
        }
    }

    private func isConsumed(_ author: Author, _ stream: StreamName) -> Bool {
        streams[stream]?.consumed[author] != nil
    }

    private func stamped(
        _ bytes: [UInt8],
        _ user: String?,
        _ atMs: Int64
    ) throws(ReelError) -> (value: [UInt8], author: Author) {
        var intake = EventIntake(limit: Self.eventBytesMax)
        var value: [UInt8] = []
        let stamp = EventIntake.Stamp(by: user, atMs: atMs, base: head)
        try bytes.lend { (bytes) throws(ReelError) in try intake.take(bytes, stamp: stamp, into: &value) }
        return (value, Author(site: intake.event.site, op: intake.event.op))
    }

    private func conflict(_ value: [UInt8], _ author: Author, _ stream: StreamName) -> ReelError? {
        guard let seq = streams[stream]?.consumed[author],
            PublishedContent.contradict(value, records[Int(seq)].value)
        else { return nil }
        return ReelError(.conflict, "the same op with other content stands at seq \(seq)")
    }

    private mutating func append(_ value: [UInt8], _ author: Author, _ name: StreamName, from device: String) {
        let seq = head + 1
        // It is taken out of the table, so that the change does not copy the whole state.
        var stream =
            streams.removeValue(forKey: name) ?? Stream(fold: Fold(stream: name, partition: 0, epoch: Self.epoch))
        let outcome = value.withUnsafeBytes { value -> Outcome in
            _ = name.key.withUnsafeBytes { rules.read(key: $0, value: value, into: &event) }
            return stream.fold.apply(event, value, seq: seq)
        }
        stream.seqs.append(seq)
        switch outcome {
        case .applied, .rejected: stream.consumed[author] = seq
        default: break
        }
        streams[name] = stream
        records.append(Record(stream: name, value: value, author: author, device: device, outcome: outcome))
    }

    /// Returns what each subscription does not have yet.
    private mutating func pushes() -> [Answer] {
        let head = head
        var answers: [Answer] = []
        for (connection, session) in sessions.sorted(by: { $0.key < $1.key }) where !session.proven.isEmpty {
            for (stream, after) in session.proven.sorted(by: { $0.key.description < $1.key.description }) {
                if streams[stream]?.seqs.last ?? .none > after {
                    answers += frames(stream, after + 1, head).map { .frame($0, to: connection) }
                }
                sessions[connection]?.proven[stream] = head
            }
            answers.append(.frame(ServerFrame(.upto(partition: 0, seq: head)), to: connection))
        }
        return answers
    }
}

extension ReelError {
    /// The refusal of an op after one that was refused before.
    fileprivate static func behind(_ first: Op) -> ReelError {
        ReelError(.gap, "op \(first) was refused before, and comes first", retryMs: 0)
    }
}
