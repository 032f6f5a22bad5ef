internal import ReelCore

extension SyncStream {
    /// Publishes the event that a closure makes from the present objects. No other event comes between reading the
    /// objects and queueing the event, so the closure decides on what this device shows at that moment.
    ///
    ///     try await todo.publish { objects in
    ///         guard let task = try objects.object("task", id: "1"), task["done"] != true else { return nil }
    ///         return .update("task", id: "1", ["done": true])
    ///     }
    ///
    /// - Parameter body: returns the event, or nil to publish nothing. The client waits for it, so it must be short.
    /// - Returns: A handle by which the seq and the outcome of the event can be awaited. If `body` returns nil, the
    ///   event of the handle has no changes, and its outcome is `superseded`.
    /// - Throws: The error of `body`, and what `publish` throws.
    @discardableResult
    public func publish(making body: sending (PresentObjects) throws -> SyncEvent?) async throws -> PublishHandle {
        try await client.publish(to: opening, making: body)
    }
}

extension SyncClient {
    func publish(
        to opening: StreamOpening,
        making body: sending (PresentObjects) throws -> SyncEvent?
    ) async throws -> PublishHandle {
        let stream = try stream(opening)
        guard let event = try make(in: stream, body) else {
            let publication = PublishHandle(.noop)
            publication.settled(.superseded)
            return publication
        }
        // Events of other threads that were enqueued since are taken later.
        let (publication, _) = try accept(event, to: opening, base: nil)
        try await committed(stream)
        return publication
    }

    private func make(
        in stream: StreamState,
        _ body: (PresentObjects) throws -> SyncEvent?
    ) throws -> SyncEvent? {
        // If nothing is queued, no turn releases the snapshot of the storage.
        defer { if !stream.isDirty { stream.fold?.storedObjects?.refresh() } }
        do {
            return try body(PresentObjects(stream) { () throws(ReelError) in try self.moment(inTurnOf: stream) })
        } catch {
            if let failure = stream.fold?.storedObjects?.failure, failure.isDamage {
                try dropState(of: stream, failure)
                markDirty(stream)
            }
            throw error
        }
    }
}
