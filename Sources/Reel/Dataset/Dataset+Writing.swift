public import ReelClient

// Writing. Each call makes its event from the objects at the moment when the event is queued: no other event of this
// device comes between. A call that changes nothing sends nothing, and the outcome of its handle is `superseded`.
extension Dataset {
    /// Inserts an object. If the object exists and its model has no constant, the insert writes the fields of `value`
    /// over it. If the model has a constant, the write of an object that exists is rejected with `guard`.
    ///
    /// Fields with the value that an absent field has, such as an empty text, are left out.
    ///
    /// - Throws: `ModelProblem` for a value that no field can hold. `SchemaError` for a model that the dataset was not
    ///   opened with. What `SyncStream.publish` throws.
    @discardableResult
    public func insert<M: Model>(_ value: M) async throws -> PublishHandle {
        try await batch { try $0.insert(value) }
    }

    /// Changes an object. The closure gets the present value and changes it. The event holds the difference, in the
    /// smallest form that the kind of each field allows.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - condition: a condition without which the change is rejected. It is not sent if nothing changes.
    ///   - body: changes the value. The client waits for it, so it must be short.
    /// - Throws: The error of `body`. `no_object` if this device does not have the object, also while the first state
    ///   of the stream arrives and reads show the object already. `deleted` if it was deleted, and `guard` if the
    ///   condition does not hold. `ModelProblem` for an object that the model cannot read, for a value that no field
    ///   can hold, and for a changed constant or id. What `SyncStream.publish` throws.
    @discardableResult
    public func update<M: Model>(
        _ id: ModelID<M>,
        if condition: Condition<M>? = nil,
        _ body: sending (inout M) throws -> Void
    ) async throws -> PublishHandle {
        try await batch { try $0.update(id, if: condition, body) }
    }

    /// Saves an edit that was made on a copy of the object, such as in a form. The event holds the difference of the
    /// two values. Fields that were not edited keep what other devices have written meanwhile. An edit of a text is
    /// moved over their edits.
    ///
    /// - Parameters:
    ///   - value: the value after the edit.
    ///   - original: the value before the edit.
    ///   - condition: a condition without which the change is rejected. It is not sent if nothing changes.
    /// - Throws: What `update` throws. `ModelProblem` with the kind `changedConstant` also if another writer of the
    ///   stream has changed a constant since `original`: read the object again.
    @discardableResult
    public func save<M: Model>(
        _ value: M,
        changedFrom original: M,
        if condition: Condition<M>? = nil
    ) async throws -> PublishHandle {
        try await batch { try $0.save(value, changedFrom: original, if: condition) }
    }

    /// Makes an object show a value, whatever it was before, by plain writes of the fields that differ. The object is
    /// inserted if this device does not have it, and repaired if the model cannot read it. Fields that the schema does
    /// not name stay. A set is written as a whole, without the elements that only a newer build of the app knows.
    ///
    /// - Throws: `ModelProblem` for a value that no field can hold, and for a constant with another value. What
    ///   `SyncStream.publish` throws.
    @discardableResult
    public func replace<M: Model>(_ value: M) async throws -> PublishHandle {
        try await batch { try $0.replace(value) }
    }

    /// Moves an object to a place in a list that is sorted by its `Order`. Only the rank of this object is written.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - lower: the object before the place; nil: the place is the first.
    ///   - upper: the object after the place; nil: the place is the last.
    /// - Throws: What `update` throws. `ModelProblem` for a schema without `Order`. `no_object` if this device does not
    ///   have one of the objects.
    @discardableResult
    public func move<M: Model>(
        _ id: ModelID<M>,
        between lower: ModelID<M>?,
        and upper: ModelID<M>?
    ) async throws -> PublishHandle {
        try await batch { try $0.move(id, between: lower, and: upper) }
    }

    /// Deletes an object. Its id cannot be used again. The model need not be able to read the object, unless there is a
    /// condition.
    ///
    /// - Throws: `guard` if the condition does not hold. What `SyncStream.publish` throws.
    @discardableResult
    public func delete<M: Model>(_ id: ModelID<M>, if condition: Condition<M>? = nil) async throws -> PublishHandle {
        try await batch { try $0.delete(id, if: condition) }
    }

    /// Makes one event of several writes, which are applied all or none.
    ///
    ///     try await todo.batch {
    ///         try $0.insert(shop)
    ///         try $0.update(milk.id) { $0.list = Ref(shop) }
    ///     }
    ///
    /// - Parameter body: adds the writes, at most 100. A later write sees the earlier ones. If it throws, nothing is
    ///   written. The client waits for it, so it must be short.
    /// - Throws: The error of `body`. What `SyncStream.publish` throws.
    @discardableResult
    public func batch(_ body: sending (inout ModelBatch) throws -> Void) async throws -> PublishHandle {
        try await stream.publish { present in
            var batch = ModelBatch(self, present)
            try body(&batch)
            return batch.event
        }
    }
}
