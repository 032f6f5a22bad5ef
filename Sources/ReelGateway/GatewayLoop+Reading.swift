import ReelCore
import ReelLog
import ReelNode

// Reading events before the head.
extension GatewayLoop {
    /// Reads events of a stream from the ring, a snapshot node's index, or the log. Reads nothing if the log has
    /// diverged. On the loop.
    ///
    /// - Parameters:
    ///   - stream: The stream.
    ///   - filter: The filter for events; nil: all events.
    ///   - partition: The stream's partition.
    ///   - from: The first seq of the range.
    ///   - to: The last seq of the range at most. The range may end earlier, but covers at least one seq.
    ///   - bytes: The maximum size of the events in bytes, unless a single event is larger.
    ///   - events: The maximum number of events.
    ///   - access: The rights of the client, for questions to other nodes.
    ///   - mayBegin: Called before a read of the log or a question to a node starts. If it returns false, nothing is
    ///     done.
    ///   - hasRoom: Called when a page is there. If it returns false, `then` gets a range that proves nothing.
    ///   - then: Called with the range or an error. It may be called before `read` returns.
    /// - Returns: False if `mayBegin` has returned false; then `then` is not called.
    @discardableResult
    func read(
        _ stream: StreamName,
        through filter: EventFilter? = nil,
        partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        events: Int = .max,
        for access: Access? = nil,
        mayBegin: () -> Bool = { true },
        hasRoom: @escaping () -> Bool = { true },
        then: @escaping (Result<EventRange, LogError>) -> Void
    ) -> Bool {
        if let divergence {
            then(.failure(divergence))
            return true
        }
        if let chunk = rings[partition].chunk(
            of: stream,
            through: filter,
            from: from,
            to: to,
            bytes: bytes,
            events: events
        ) {
            share.meters.ringEvents.add(chunk.count)
            then(.success(chunk))
            return true
        }
        let query = LogQuery(
            stream: stream,
            filter: filter,
            partition: partition,
            from: from,
            to: min(to, rings[partition].first - 1),
            bytes: bytes,
            events: events
        )
        let isThere = share.pages.page(at: from, of: partition) != nil
        guard !isThere, let snapshotEventsClient, let node = snapshotEventsClient.node(for: query) else {
            return readPage(query, mayBegin: mayBegin, hasRoom: hasRoom, then: then)
        }
        guard mayBegin() else { return false }
        snapshotEventsClient.ask(node, for: query, authorization: access?.authorization) { [self] chunk in
            if let divergence { return then(.failure(divergence)) }
            guard let chunk else {
                // The question has already taken the place that `mayBegin` grants.
                _ = readPage(query, mayBegin: { true }, hasRoom: hasRoom, then: then)
                return
            }
            share.meters.snapshotEvents.add(chunk.count)
            then(.success(chunk))
        }
        return true
    }

    private func readPage(
        _ query: LogQuery,
        mayBegin: () -> Bool,
        hasRoom: @escaping () -> Bool,
        then: @escaping (Result<EventRange, LogError>) -> Void
    ) -> Bool {
        pages.read(query, mayBegin: mayBegin, hasRoom: hasRoom) { [self] result in
            if let divergence { return then(.failure(divergence)) }
            if case .success(let chunk) = result { share.meters.logEvents.add(chunk.count) }
            then(result)
        }
    }

    /// The error once the log is not what was read before; nil: it is. It also ends reads that have started earlier.
    private var divergence: LogError? {
        share.divergence.map { LogError($0.code, $0.message) }
    }
}
