public import ReelCore

// The queue of own events, as an app steers it.
extension SyncStream {
    /// Returns the own events that wait, in the order in which they are sent. Events of the client itself are left out.
    public func queue() async -> [QueuedEvent] { await client.queue(of: opening) }

    /// Removes an event that waits and has no op. The outcome of all writes that were merged into it is `superseded`.
    ///
    /// The objects no longer show the event. Waiting splices that may count on its text are refused with `stale`. An
    /// event that needs the withdrawn one otherwise, such as an update of an object that it makes, stays in the queue.
    /// The stream may reject it.
    ///
    /// - Parameter id: the `id` of an event in `queue`.
    /// - Throws: `WithdrawalRefused` if no event with this id waits, or if the event has its op. `closed`, or a code
    ///   that begins with `store_`, as `publish` throws them.
    public func withdraw(_ id: QueuedEvent.ID) async throws { try await client.withdraw(id, of: opening) }

    /// Removes all events that wait and have no op, as `withdraw` does. Events that a node may have stay.
    ///
    /// - Returns: The number of removed events. Merged writes count as one.
    /// - Throws: `closed` or a code that begins with `store_` as `publish` throws them.
    @discardableResult
    public func discard() async throws -> Int { try await client.discard(opening) }

    /// Waits until the log has all own events that wait now, and the device has read them back.
    ///
    /// - Parameter deadline: the longest time to wait.
    /// - Throws: `FlushTimeout` with the events that still wait after that time. `closed` if the stream or
    ///   the client ends first. `CancellationError` if the task is cancelled.
    public func flush(deadline: Duration) async throws { try await client.flush([opening], deadline: deadline) }

    /// Puts an event into the queue, like `publish`, without waiting: for code that cannot await. Can be called from
    /// any thread.
    ///
    /// The events of one thread keep the order of its calls, also in relation to its later calls of `publish`. The
    /// client takes the events in batches. If it cannot take one, `stored` throws, and the readers of the notices get
    /// `notApplied` with the outcome `failed`.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - base: the position that the author had read, as for `publish`. Nil: what is folded when the client takes the
    ///     event.
    /// - Returns: A handle by which the storing of the event can be awaited.
    /// - Throws: `limit` if `EnqueuedEvent.unstoredMax` events of the client are not stored yet. `closed` once the
    ///   client is closed. After the stream is closed, `stored` throws it.
    @discardableResult
    public func enqueue(_ event: SyncEvent, base: ReadPosition? = nil) throws(ReelError) -> EnqueuedEvent {
        try client.enqueue(event, to: opening, base: base)
    }
}

extension SyncClient {
    /// Waits until the log has all own events of the device that wait now, and the device has read them back. Streams
    /// with waiting events are opened.
    ///
    /// - Parameter deadline: the longest time to wait.
    /// - Throws: `FlushTimeout` with the events that still wait after that time. `closed` if the client or one
    ///   of the streams ends first. A code that begins with `store_` if the store failed. `CancellationError` if the
    ///   task is cancelled.
    public func flush(deadline: Duration) async throws {
        let openings = try streams().filter { $0.pendingCount > 0 }.map { try open($0.id).opening }
        try await flush(openings, deadline: deadline)
    }
}
