internal import ReelCore

// Events that were enqueued without waiting.
extension SyncClient {
    /// The maximum number of enqueued events that are taken before the client does something else.
    private static let enqueuedBatch = 1_000

    nonisolated func enqueue(
        _ event: SyncEvent,
        to opening: StreamOpening,
        base: ReadPosition?
    ) throws(ReelError) -> EnqueuedEvent {
        let enqueued = EnqueuedEvent(event)
        if try resources.inbox.add(.init(event: enqueued, opening: opening, base: base)) {
            transport.execute { [weak self] in self?.assumeIsolated { $0.takeSomeEnqueued() } }
        }
        return enqueued
    }

    /// Takes all events that were enqueued. Every call that reads or changes a queue does this first, so that it comes
    /// after the calls of its thread before it.
    func takeEnqueued() {
        while !isClosed, takeEnqueuedBatch() {}
    }

    private func takeSomeEnqueued() {
        guard !isClosed, takeEnqueuedBatch() else { return }
        Task { [weak self] in await self?.takeSomeEnqueued() }
    }

    /// Takes a batch of enqueued events. Returns true if there are more.
    private func takeEnqueuedBatch() -> Bool {
        let (items, hasMore) = resources.inbox.take(Self.enqueuedBatch)
        var finished = 0
        for item in items {
            do {
                let (publication, stream) = try accept(item.event.event, to: item.opening, base: item.base)
                if store != nil {
                    stream.enqueued.append((item.event, publication))
                    continue
                }
                item.event.finish(.success(publication))
            } catch {
                item.event.finish(.failure(error))
                notify(.notApplied(stream: item.opening.name.description, item.event.event, .failed(error)))
            }
            finished += 1
        }
        resources.inbox.finished(finished)
        return hasMore
    }

    /// Called when the events of the stream are committed.
    func storedEnqueued(_ stream: StreamState) {
        guard !stream.enqueued.isEmpty else { return }
        for (event, publication) in stream.enqueued { event.finish(.success(publication)) }
        resources.inbox.finished(stream.enqueued.count)
        stream.enqueued = []
    }
}
