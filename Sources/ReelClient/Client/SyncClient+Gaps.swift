internal import ReelCore

// Gaps below the proven seqs of a live subscription are fetched: on the connection, or from another node.
extension SyncClient {
    /// The timeout of a request for missing seqs. After it another node is asked, with twice the time. On a slow
    /// connection the answer is still on its way, and answers to repeated requests would queue after it.
    static let fetchMs: Int64 = 3_000
    static let fetchDoublings = 4
    /// The maximum number of events in one request by HTTP.
    static let fetchEvents = 1_000
    /// The maximum number of unanswered fetches on a connection; a node accepts 64.
    static let fetchesMax = 32

    func fillGaps(_ stream: StreamState) {
        guard !isClosed, stream.phase == .live, let view = stream.view, let proven = view.proven else { return }
        // Seqs that the subscription has not proven yet are on their way.
        let missing = proven >= 0 ? view.covered.gaps(in: 0...proven) : SeqRanges()
        if let fetching = stream.fetching {
            guard fetching.ranges.intersection(missing).isEmpty else { return }
            stream.dropFetch()
            stream.fetchFailures = 0
        }
        guard !missing.isEmpty, stream.retry == nil, stream.catchUp == nil else { return }
        let isWide = missing.count >= Self.deltaFromSeqs && stream.catchUpFailures < Self.catchUpFailuresMax
        if stream.needsSnapshot || (isWide && stream.start != .all) { return catchUp(stream) }
        let usesPeers = (gapSource == .peers) == stream.fetchFailures.isMultiple(of: 2)
        if usesPeers, failover.nodes.count > 1 || gapSource == .peers {
            fetchFromPeer(stream, missing)
        } else {
            fetchOnConnection(stream, missing)
        }
    }

    private func fetchOnConnection(_ stream: StreamState, _ missing: SeqRanges) {
        guard let limits = link?.welcome?.limits, let epoch = stream.view?.fold.epoch else { return }
        var ranges: [ClosedRange<Seq>] = []
        var left = min(Int64(limits.fetch), ClientFrame.fetchSeqs)
        for range in missing.ranges.prefix(ClientFrame.fetchRanges) where left > 0 {
            let upper = min(range.upperBound, range.lowerBound + left - 1)
            ranges.append(range.lowerBound...upper)
            left -= upper - range.lowerBound + 1
        }
        guard !ranges.isEmpty else { return }
        guard opened.values.count(where: { $0.fetching.map { $0.request == nil } ?? false }) < Self.fetchesMax else {
            return retry(stream, afterMs: 100)
        }
        begin(stream, SeqRanges(ranges), request: nil)
        send(ClientFrame(.fetch(.init(stream: stream.name, epoch: epoch, ranges: ranges)), ref: Ref.fetch))
    }

    private func fetchFromPeer(_ stream: StreamState, _ missing: SeqRanges) {
        guard let range = missing.ranges.first, let epoch = stream.view?.fold.epoch, let node = failover.peer() else {
            return
        }
        let limit = min(range.upperBound - range.lowerBound + 1, Int64(Self.fetchEvents))
        let target =
            "/v1/streams/\(stream.name)/events?after=\(range.lowerBound - 1)&epoch=\(epoch)&limit=\(limit)"
        let name = stream.name
        let page = EventsPage()
        let request = transport.get(from: node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.received(response, page, name) }
        }
        begin(stream, SeqRanges([range]), request: request)
    }

    private func begin(_ stream: StreamState, _ ranges: SeqRanges, request: (any TransportRequest)?) {
        counters.gapsFetched += 1
        counters.seqsFetched += ranges.count
        stream.fetching = StreamState.Fetching(ranges: ranges, request: request, deadline: deadline(stream.name))
    }

    private func deadline(_ name: StreamName) -> any TransportRequest {
        let failures = opened[name]?.fetchFailures ?? 0
        return after(Self.fetchMs << Int64(min(failures, Self.fetchDoublings))) { client in
            guard let stream = client.opened[name] else { return }
            stream.dropFetch()
            stream.fetchFailures += 1
            client.fillGaps(stream)
        }
    }

    /// Restarts the timeout, because a piece of the answer has arrived.
    func renewDeadline(_ stream: StreamState) {
        guard let fetching = stream.fetching else { return }
        fetching.deadline.cancel()
        stream.fetching?.deadline = deadline(stream.name)
    }

    private func received(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], !isClosed else { return }
        if case .body(let bytes) = response {
            counters.bytesReceived += Int64(bytes.count)
            renewDeadline(stream)
        }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else { return }
            guard events.to >= events.from, events.epoch == stream.view?.fold.epoch else {
                throw ReelError(.nodeBehind, "the node has not read the requested seqs yet")
            }
            stream.dropFetch()
            stream.fetchFailures = 0
            try received(events.frame, isPushed: false)
            fillGaps(stream)
        } catch {
            stream.dropFetch()
            stream.fetchFailures += 1
            if error.code == .truncated { stream.needsSnapshot = true }
            retry(stream, afterMs: 50)
        }
    }
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
        case .status(let status): self.status = status
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
