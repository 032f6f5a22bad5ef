import ReelCore
import ReelLog
import ReelNode

// What lies before the head.
extension GatewayLoop {
    /// Reads events of a stream from `from` on, up to `to` at most: from the ring, a snapshot node's index, or the log.
    /// The chunk may end earlier than asked; it always goes on by at least one seq. Of a log that has diverged nothing
    /// is read. `mayBegin` is asked before the log is read for this, or a node asked; false, and nothing is done, if it
    /// may not. Who is not ready once it is there gets a chunk that proves nothing.
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
                // Its place is taken already.
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

    /// Why nothing is read any more, also for who asked before: the log is not what was read before.
    private var divergence: LogError? {
        share.divergence.map { LogError($0.code, $0.message) }
    }
}
