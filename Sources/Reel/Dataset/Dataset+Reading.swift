internal import ReelClient

// Reading. No call waits for a network, and any thread can make it.
extension Dataset {
    /// Returns an object with all own events; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Throws: `ModelProblem` for an object that the model cannot read. `SchemaError` for a model that the dataset
    ///   was not opened with. What `SyncStream.object` throws.
    public func object<M: Model>(_ id: ModelID<M>) throws -> M? {
        let schema = try schema(of: M.self)
        return try stream.object(schema.name, id: id.text).map(schema.value)
    }

    /// Returns true if an own event that has changed or deleted an object is not confirmed yet: it waits in the queue,
    /// and this device has not read it back from the stream. An event that a snapshot or delta contains is confirmed,
    /// also while the device asks a node for its outcome.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with. `closed` if the stream or the client
    ///   is closed. A code that begins with `store_` if the store failed.
    public func isPending<M: Model>(_ id: ModelID<M>) throws -> Bool { try read { try $0.isPending(id) } }

    /// Returns the target of a reference; nil if the reference dangles.
    ///
    /// - Throws: What `object` throws.
    public func resolve<M: Model>(_ reference: Ref<M>) throws -> M? { try object(reference.id) }

    /// Returns all objects of a model with all own events, and the problems of those that it cannot read. The time and
    /// the memory that it takes follow the number of these objects.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with. What `SyncStream.objects` throws.
    public func objects<M: Model>(of model: M.Type) throws -> ModelObjects<M> {
        let schema = try schema(of: model)
        return ModelObjects(try stream.objects(schema.name), schema)
    }
}
