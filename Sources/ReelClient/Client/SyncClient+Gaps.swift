internal import ReelCore

// Gaps below the proven seqs of a live subscription are fetched: on the connection, or from another node.
extension SyncClient {
    /// The maximum number of events in one request by HTTP.
    static let fetchEvents = 1_000
    /// The maximum number of unanswered fetches on a connection; a node accepts 64.
    static let fetchesMax = 32

    /// Requests these seqs. A peer is asked for the first range only.
    func fetch(_ stream: StreamState, _ ranges: SeqRanges, from source: StreamSync.Source) {
        guard let epoch = stream.view?.fold.epoch, let range = ranges.ranges.first else { return }
        switch source {
        case .connection:
            guard opened.values.count(where: \.isFetchingOnConnection) <= Self.fetchesMax else {
                return step(stream, .fetchPostponed)
            }
            send(ClientFrame(.fetch(.init(stream: stream.name, epoch: epoch, ranges: ranges.ranges)), ref: Ref.fetch))
        case .peer:
            guard let node = failover.peer() else { return }
            let limit = min(range.upperBound - range.lowerBound + 1, Int64(Self.fetchEvents))
            let target =
                "/v1/streams/\(stream.name)/events?after=\(range.lowerBound - 1)&epoch=\(epoch)&limit=\(limit)"
            let (name, page) = (stream.name, EventsPage())
            let request = transport.get(from: node, target, token: token) { [weak self] response in
                self?.assumeIsolated { $0.received(response, page, name) }
            }
            stream.handles.keep(request: .fetch, request)
        }
        counters.gapsFetched += 1
        counters.seqsFetched += ranges.count
    }

    private func received(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else { return step(stream, .progressed(.fetch)) }
            guard events.to >= events.from, events.epoch == stream.view?.fold.epoch else {
                throw ReelError(.nodeBehind, "the node has not read the requested seqs yet")
            }
            stream.handles.cancel(request: .fetch)
            try apply(events.frame, isPushed: false, stream)
            step(stream, .fetchAnswered)
        } catch {
            stream.handles.cancel(request: .fetch)
            step(stream, .fetchFailed(error))
        }
    }
}

extension StreamState {
    /// True if a fetch on the connection has no complete answer yet.
    fileprivate var isFetchingOnConnection: Bool { sync.isFetching && !handles.isRunning(.fetch) }
}

/// A page of events that is being read. Belongs to the client's actor.
final class EventsPage: @unchecked Sendable {
    private var status = 0
    private var body: [UInt8] = []

    struct Events {
        var epoch: Epoch
        var partition: Int
        var from: Seq
        var to: Seq
        var head: Seq
        var frame: ServerFrame.Events
    }

    /// The largest answer in bytes. A node cuts a page at about 4 MiB.
    private static let bytesMax = 32 << 20

    func received(_ response: TransportResponse, _ stream: StreamName) throws(ReelError) -> Events? {
        switch response {
        case .head(let status, _): self.status = status
        case .body(let bytes):
            guard body.count + bytes.count <= Self.bytesMax else {
                throw ReelError(.tooLarge, "found an answer of more than \(Self.bytesMax) bytes")
            }
            body += bytes
        case .end where status == 200:
            return try body.lend { (bytes) throws(ReelError) in try Self.parse(bytes, stream) }
        case .end: throw ReelError(problem: body, status: status)
        case .failed(let reason): throw ReelError(.logUnavailable, reason, retryMs: 0)
        }
        return nil
    }

    private static func parse(_ bytes: Bytes, _ stream: StreamName) throws(ReelError) -> Events {
        let object = try JSONObject(bytes, levels: ClientFrame.levels, shape: .badFrame)
        guard let epoch = try object.epoch(), let partition = try object.integer("partition"),
            let from = try object.integer("from"), let to = try object.integer("to", from: -1),
            let head = try object.integer("head", from: -1), let list = object.raw("events")
        else { throw ReelError(.badFrame, "expected epoch, partition, from, to, head and events") }
        var events: [DeliveredEvent] = []
        var reader = JSONReader(list, levels: ClientFrame.levels, shape: .badFrame)
        try reader.array { (reader) throws(ReelError) in events.append(try DeliveredEvent(try reader.raw())) }
        return Events(
            epoch: epoch,
            partition: Int(partition),
            from: from,
            to: to,
            head: head,
            frame: ServerFrame.Events(stream: stream, from: from, to: to, events: events)
        )
    }
}
