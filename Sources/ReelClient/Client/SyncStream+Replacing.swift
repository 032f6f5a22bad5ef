internal import ReelCore

extension SyncStream {
    /// Publishes an event that makes an object have exactly these fields, as this device knows it: it writes them, and
    /// removes all other fields that the object has here, with own events that wait. If the object does not exist here,
    /// the event is an insert.
    ///
    /// No event comes between reading the object and queueing the event. A field that this device has not read stays:
    /// another device may have written it in the meantime. Each field has the value of its last writer in the log, as
    /// with every write.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    ///   - fields: the values of the fields by name.
    /// - Returns: A handle by which the seq and the outcome of the event can be awaited.
    /// - Throws: What `publish` throws. `too_large` also if the event would write more than 1,024 fields.
    @discardableResult
    public func replace(_ model: String, id: String, _ fields: FieldMap<JSONValue>) async throws -> PublishHandle {
        try await client.replace(model, id: id, fields, in: opening)
    }
}

extension SyncClient {
    nonisolated func replace(
        _ model: String,
        id: String,
        _ fields: FieldMap<JSONValue>,
        in opening: StreamOpening
    ) async throws -> PublishHandle {
        try await stored { (client) throws(ReelError) in
            let stream = try client.stream(opening)
            let event: SyncEvent
            do throws(ReelError) {
                event = try stream.replacement(model, id: id, fields)
            } catch {
                if error.isDamage {
                    try client.dropState(of: stream, error)
                    client.markDirty(stream)
                }
                throw error
            }
            // Events of other threads that were enqueued since are taken later.
            return try client.accept(event, to: opening, base: nil)
        }
    }
}

extension StreamState {
    /// Returns the event that gives an object these fields only, as the device shows it now.
    fileprivate func replacement(_ model: String, id: String, _ fields: FieldMap<JSONValue>) throws(ReelError)
        -> SyncEvent
    {
        let key = Fold.key(model: model, id: id)
        let overlay = look()
        let shown = overlay.covers(key) ? overlay.object(key) : fold?.object(key)
        if let failure = fold?.storedObjects?.failure { throw failure }
        guard let shown, !shown.isDeleted else { return .insert(model, id: id, fields) }
        var written = fields
        for name in SyncObject(shown, readAt: readPosition).fields.names where fields[name] == nil {
            written[name] = .null
        }
        return .update(model, id: id, written)
    }
}
