internal import ReelCore

// The calls of a `SyncStream` to its client.
extension SyncClient {
    /// Publishes an event, and returns its handle once the event is durable.
    ///
    /// The continuation resumes the caller directly. In a method of the actor it would first return to the actor, and
    /// then to the caller. That changes threads twice more, which is a fifth of the time of a publish.
    nonisolated func publish(_ event: SyncEvent, to opening: StreamOpening, base: ReadPosition?) async throws
        -> PublishHandle
    {
        try await withCheckedThrowingContinuation { continuation in
            transport.execute {
                self.assumeIsolated { client in
                    do throws(ReelError) {
                        client.takeEnqueued()
                        let (publication, stream) = try client.accept(event, to: opening, base: base)
                        stream.commits.append { error in
                            if let error { return continuation.resume(throwing: error) }
                            continuation.resume(returning: publication)
                        }
                    } catch {
                        continuation.resume(throwing: error)
                    }
                }
            }
        }
    }

    /// Waits until the queued events of a stream are durable.
    func committed(_ stream: StreamState) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            stream.commits.append { error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            }
        }
    }

    /// Checks an event and queues it. It is durable after the next commit of the stream.
    func accept(
        _ event: SyncEvent,
        to opening: StreamOpening,
        base position: ReadPosition?
    ) throws(ReelError) -> (PublishHandle, StreamState) {
        try checkOpen()
        guard let stream = opened[opening] else { throw .streamIsClosed(opening.name.description) }
        // An event that is refused leaves the stream as it is, so no turn would release the snapshot of the storage.
        defer { if !stream.isDirty { stream.fold?.storedObjects?.refresh() } }
        try event.checkNumbers()
        let base = try stream.base(of: event, readAt: position)
        var intake = EventIntake(limit: eventBytes)
        var checked: [UInt8] = []
        let author = EventID(site: stream.outbox.site, op: 0)
        try event.encoded(base: base, author: author).lend { (bytes) throws(ReelError) in
            try intake.take(bytes, stamp: .init(by: nil, atMs: 0, base: base), into: &checked)
        }
        let number = try add(event, to: stream, base: base, read: position?.withdrawals)
        let publication = PublishHandle(event)
        stream.publications[number, default: []].append(publication)
        markDirty(stream)
        return (publication, stream)
    }

    /// Queues an event. If a row that the check of the event needs is damaged, the state is dropped, and the event is
    /// checked without it.
    private func add(_ event: SyncEvent, to stream: StreamState, base: Seq, read: Int?) throws(ReelError) -> Int64 {
        do throws(ReelError) {
            return try stream.add(event, base: base, read: read, wallMs: transport.wallMs, eventMaxBytes: eventBytes)
        } catch {
            guard let failure = stream.fold?.storedObjects?.failure, failure.isDamage else { throw error }
            try dropState(of: stream, failure)
            markDirty(stream)
            return try stream.add(event, base: base, read: read, wallMs: transport.wallMs, eventMaxBytes: eventBytes)
        }
    }

    /// Returns an open stream after the turn in which it has changed. So the app never learns more of a stream than it
    /// can read.
    func settled(_ opening: StreamOpening) -> StreamState? {
        takeEnqueued()
        if opened[opening]?.isDirty == true { finishTurn() }
        return opened[opening]
    }

    /// Returns a stream as `settled` does. Throws if it is not open.
    func settledStream(_ opening: StreamOpening) throws(ReelError) -> StreamState {
        try checkOpen()
        guard let stream = settled(opening) else { throw failure ?? closedError(of: opening) }
        return stream
    }

    func seq(of opening: StreamOpening) -> Seq { settled(opening)?.seq ?? .none }

    func coverage(of opening: StreamOpening) -> SeqRanges { settled(opening)?.view?.covered ?? SeqRanges() }

    func gaps(of opening: StreamOpening) -> SeqRanges { settled(opening)?.view?.gaps ?? SeqRanges() }

    func epoch(of opening: StreamOpening) -> Epoch? { settled(opening)?.view?.fold.epoch }

    func digest(of opening: StreamOpening) -> UInt64? { settled(opening)?.view?.digest() }

    func pending(of opening: StreamOpening) -> [PublishHandle] {
        guard let stream = settled(opening) else { return [] }
        return stream.outbox.entries.flatMap { stream.publications[$0.number] ?? [] }
    }

    func queued(of opening: StreamOpening) -> Int { settled(opening)?.outbox.entries.count ?? 0 }

    func waitUntil(seq: Seq, of opening: StreamOpening) async throws {
        let stream = try settledStream(opening)
        if stream.seq >= seq { return }
        waits += 1
        let number = waits
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                // The handler may have left the executor in between.
                if settled(opening) === stream, stream.seq >= seq { return continuation.resume() }
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                if isClosed || opened[opening] !== stream {
                    return continuation.resume(throwing: failure ?? closedError(of: opening))
                }
                stream.waiters.append(StreamState.Waiter(number: number, seq: seq, continuation: continuation))
            }
        } onCancel: {
            Task { await self.cancelWait(number, opening) }
        }
    }

    private func cancelWait(_ number: Int, _ opening: StreamOpening) {
        guard let stream = opened[opening], let index = stream.waiters.firstIndex(where: { $0.number == number }) else {
            return
        }
        stream.waiters.remove(at: index).continuation.resume(throwing: CancellationError())
    }

    func changes(of opening: StreamOpening) -> ObjectChanges {
        guard let stream = opened[opening], !isClosed else {
            let feeds = Feeds(ObjectChangeBatch.gather)
            feeds.close()
            return ObjectChanges(source: FeedSource(feeds))
        }
        // Changes before the first reader started are no news.
        if stream.feeds.isEmpty {
            stream.follow()
            stream.news = []
        }
        return ObjectChanges(source: FeedSource(stream.feeds))
    }
}

extension ReelError {
    /// The error of every call to a client that was closed or released.
    static let closed = ReelError(.closed, "found a client that was closed, expected an open one: make another client")
}
