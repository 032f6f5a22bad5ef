public import ReelClient

extension Dataset {
    /// Writes the fields of an object that were never written, such as the first settings of an app. It can be called
    /// at each start, on each device. A field that has a value, or gets one from another device, keeps that value.
    ///
    /// The write is one event for the constants, and one for each other field that is absent. Each has the condition
    /// that its fields are absent, so that the log decides field by field. An event that comes too late is rejected
    /// with `guard`, and nothing is lost. While the first state of the stream arrives, all fields count as absent.
    ///
    /// - Parameter value: the value whose fields are written.
    /// - Returns: A handle for each event.
    /// - Throws: `ModelProblem` for a value that no field can hold. `deleted` if the object was deleted. What
    ///   `SyncStream.publish` throws. Earlier fields may be written then.
    @discardableResult
    public func insertDefaults<M: Model>(_ value: M) async throws -> [PublishHandle] {
        let schema = try schema(of: M.self)
        // Constants come together, so that no device sees an object with some of them.
        let constants = schema.fields.filter { $0.kind == .constant }
        let others = schema.fields.filter { $0.kind != .constant }.map { [$0] }
        let insertion = try schema.insertion(of: value)
        var handles: [PublishHandle] = []
        for fields in [constants] + others {
            let handle = try await stream.publish { present in
                let object = try present.object(insertion.model, id: insertion.id)
                return insertion.limited(to: fields, absentIn: object).map { SyncEvent($0) }
            }
            if !handle.event.changes.isEmpty { handles.append(handle) }
        }
        return handles
    }
}

extension SyncChange {
    /// Returns the part of an insert that writes some fields, if they are absent in an object. Nil if nothing is to be
    /// written and the object exists.
    fileprivate func limited<M: Model>(to fields: [SchemaField<M>], absentIn object: SyncObject?) -> SyncChange? {
        var change = SyncChange.insert(model, id: id)
        for field in fields where field.stored({ object?[$0] }) == nil {
            guard let value = self.fields[field.name] else { continue }
            change.fields[field.name] = value
            change.guards[field.name] = -1
            if let formerly = field.formerly { change.guards[formerly] = -1 }
        }
        return change.fields.isEmpty && object != nil ? nil : change
    }
}
