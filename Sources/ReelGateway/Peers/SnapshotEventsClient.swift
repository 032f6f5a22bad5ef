import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Asks snapshot nodes, which have an index, for old events of one stream. The log has these events, too. So no
/// question is repeated, and a node that fails is not asked for a while. On its loop only.
final class SnapshotEventsClient: EventIndex {
    /// The number of seqs above which a range is asked for. A question costs about as much as reading four pages of the
    /// log.
    static let distance: Seq = 4 * PageCache.seqsMax

    /// The maximum number of questions under way. A crowd reads pages together for less.
    static let underWayMax = 8
    /// The maximum number of events per answer.
    private static let eventsMax = 1_000
    /// A stream with more than one event in this number of seqs is dense: the pages of the log then bring more events
    /// for less.
    private static let denseSeqs: Seq = 16
    /// The number of seqs after the end of an answer for which a dense stream is read from the log.
    private static let densePart: Seq = 65_536
    /// The maximum number of streams that are remembered as dense.
    private static let denseMax = 1_024
    /// The time in milliseconds for which a node is not asked after it failed.
    private static let restMs: Int64 = 10_000
    /// The maximum size of an answer in bytes. Nodes send about 4 MiB at most, and one event more.
    private static let answerBytes = 16 << 20

    private struct Place: Hashable {
        var node: String
        var partition: Int
    }

    private let client: PeerClient
    private let announcer: Announcer
    private let epoch: Epoch
    private let timeout: Duration
    private var warnings = LineLimiter(lines: 10, windowMs: 10_000)
    private var underWay = 0
    private var turn = 0
    /// The nodes that are not asked at present.
    private var resting = ExpiringSet<String>()
    /// The first seq of each node's index, if the node has named it.
    private var begins: [Place: Seq] = [:]
    /// For each dense stream the seq up to which it is read from the log.
    private var dense: [StreamName: Seq] = [:]

    init(_ client: PeerClient, announcer: Announcer, epoch: Epoch, timeout: Duration) {
        self.client = client
        self.announcer = announcer
        self.epoch = epoch
        self.timeout = timeout
    }

    private var loop: EventLoop { client.loop }

    /// Returns a node that can be asked for the query; nil: there is none, or asking does not pay.
    func node(for query: LogQuery) -> NodeAnnouncement? {
        guard query.to - query.from >= Self.distance, underWay < Self.underWayMax else { return nil }
        guard dense[query.stream].map({ query.from > $0 }) ?? true else { return nil }
        let able = announcer.alive.filter { node in
            let isResting = resting.contains(node.id, nowMs: loop.nowMs)
            guard node.role == "snapshot", !isResting, client.access.canAsk(node) else { return false }
            let place = Place(node: node.id, partition: query.partition)
            let head = node.folded(in: epoch).first { $0.partition == query.partition }?.seq ?? .none
            return head - query.from >= Self.distance && begins[place].map { $0 <= query.from } ?? true
        }
        guard !able.isEmpty else { return nil }
        turn += 1
        return able[turn % able.count]
    }

    /// Asks a node, with the client's authorization; see `EventIndex.ask`.
    func ask(
        _ node: NodeAnnouncement,
        for query: LogQuery,
        authorization: String?,
        then: @escaping (EventRange?) -> Void
    ) {
        let target =
            "/v1/streams/\(query.stream)/events?after=\(query.from - 1)&epoch=\(epoch)"
            + "&limit=\(min(query.events, Self.eventsMax))"
        let request = client.request(to: node, authorization: authorization, timeout: timeout) {
            HTTPClientRequest("GET", host: $0.host, port: $0.port, target: target)
        }
        guard let request else { return loop.schedule { then(nil) } }
        underWay += 1
        client.fetch(request, bytesMax: Self.answerBytes) { [self] result in
            switch result {
            case .success(let response): take(response, of: node, for: query, then: then)
            case .failure(let error):
                rest(node, error.message)
                end(nil, then)
            }
        }
    }

    private func end(_ piece: EventRange?, _ then: (EventRange?) -> Void) {
        underWay -= 1
        then(piece)
    }

    private func take(
        _ response: HTTPResponse,
        of node: NodeAnnouncement,
        for query: LogQuery,
        then: @escaping (EventRange?) -> Void
    ) {
        let (body, epoch) = (response.body, epoch)
        guard response.status == 200 else {
            if response.status == 410, let first = PeerRefusal(body).first, first > query.from {
                begins[Place(node: node.id, partition: query.partition)] = first
            } else {
                rest(node, "it answered with status \(response.status)")
            }
            return end(nil, then)
        }
        loop.offload {
            Result { () throws(ReelError) in try EventRange(answer: body, to: query, epoch: epoch) }
        } then: { [self] result in
            switch result {
            case .success(let piece):
                if Seq(piece.count) * Self.denseSeqs > piece.to - query.from {
                    if dense.count >= Self.denseMax { dense = [:] }
                    dense[query.stream] = piece.to + Self.densePart
                }
                end(piece, then)
            case .failure(let error):
                rest(node, error.message)
                end(nil, then)
            }
        }
    }

    private func rest(_ node: NodeAnnouncement, _ detail: String) {
        resting.insert(node.id, untilMs: loop.nowMs + Self.restMs, nowMs: loop.nowMs)
        client.warn("a snapshot node has no events", node, detail, &warnings)
    }
}

@available(*, unavailable)
extension SnapshotEventsClient: Sendable {}

extension EventRange {
    /// Reads a node's answer: as much of the wanted range as fits. Throws if it is not an answer to the query.
    init(answer body: [UInt8], to query: LogQuery, epoch: Epoch) throws(ReelError) {
        self = try body.withUnsafeBufferPointer { (bytes) throws(ReelError) in
            let object = try JSONObject(Bytes(bytes), levels: Limits.depth + 4, shape: .internal)
            let place = (try object.stream(), try object.epoch(), try object.integer("partition"))
            let (from, to) = (try object.integer("from"), try object.integer("to", from: .none))
            guard place == (query.stream, epoch, Int64(query.partition)), from == query.from, let to, to >= query.from
            else {
                throw ReelError(.internal, "found an answer to another question, or one that covers no seq")
            }
            var builder = EventRangeBuilder(from: query.from, bytes: query.bytes, events: query.events)
            var (filter, last) = (FilterRun(query.filter), query.from - 1)
            for element in try object.elements("events") ?? [] {
                let delivered = try DeliveredEvent(element)
                guard delivered.seq > last, delivered.seq <= to else {
                    throw ReelError(.internal, "found the event \(delivered.seq), expected one in \(last + 1)...\(to)")
                }
                last = delivered.seq
                if last > query.to { break }
                let isAdded = delivered.value.withUnsafeBytes { value in
                    builder.add(last, value, through: &filter, isEvent: !Barrier.isKnown(value))
                }
                if !isAdded { break }
            }
            builder.prove(to: min(to, query.to))
            return builder.range
        }
    }
}

extension Barrier {
    /// Returns true if a delivered record is a barrier, which passes every filter.
    fileprivate static func isKnown(_ value: Bytes) -> Bool {
        if case .known = read(value) { true } else { false }
    }
}
