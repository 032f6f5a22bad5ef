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
        try await publish { objects in
            guard let shown = try objects.object(model, id: id) else { return .insert(model, id: id, fields) }
            var written = fields
            for name in shown.fields.names where fields[name] == nil { written[name] = .null }
            return .update(model, id: id, written)
        }
    }
}
