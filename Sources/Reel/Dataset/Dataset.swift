public import ReelClient

/// The typed objects of a stream.
///
///     let todo = try await client.open("todo-7", models: [TodoTask.self, TaskList.self])
///     try await todo.insert(milk)
///     try await todo.update(milk.id) { $0.votes += 1; $0.tags.insert("shop") }
///
/// Each write is one event, which holds the difference only. It returns when the event is durable on this device, with
/// and without a network, and the handle that it returns tells the outcome.
public struct Dataset: Sendable {
    /// The stream that holds the objects.
    public let stream: SyncStream
    /// The models that the dataset was opened with.
    public let models: [any Model.Type]
    /// The objects that running queries share.
    let live: LiveDatasetReference

    /// Creates the typed view of a stream.
    ///
    /// - Parameters:
    ///   - stream: the stream that holds the objects.
    ///   - models: the models of the objects that are read and written. The stream may hold objects of other models.
    /// - Throws: `SchemaError` with all faults of the schemas.
    public init(_ stream: SyncStream, models: [any Model.Type]) throws(SchemaError) {
        try Self.check(models)
        self.init(stream, checked: models)
    }

    /// Creates the typed view of a stream with models that were checked.
    fileprivate init(_ stream: SyncStream, checked models: [any Model.Type]) {
        (self.stream, self.models, live) = (stream, models, LiveDatasetReference(stream.content))
    }

    /// Throws an error with all faults of the models.
    static func check(_ models: [any Model.Type]) throws(SchemaError) {
        func describe<M: Model>(_ model: M.Type) -> (name: String, faults: [SchemaFault]) {
            (M.schema.name, M.schema.faults())
        }
        var faults: [SchemaFault] = models.isEmpty ? [.noModels] : []
        var types: [String: String] = [:]
        for model in models {
            let ((name, own), type) = (describe(model), String(reflecting: model))
            if let other = types[name] { faults.append(.modelTwice(model: name, types: [other, type])) }
            types[name] = type
            faults += own
        }
        if !faults.isEmpty { throw SchemaError(faults: faults) }
    }

    /// Returns the schema of a model, which was checked at the opening.
    func schema<M: Model>(of model: M.Type) throws(SchemaError) -> Schema<M> { try Self.schema(of: model, in: models) }

    /// Returns the schema of a model, which is one of the models of a dataset.
    static func schema<M: Model>(
        of model: M.Type,
        in models: [any Model.Type]
    ) throws(SchemaError) -> Schema<M> {
        guard models.contains(where: { $0 == model }) else {
            throw SchemaError(faults: [.unknownModel(model: M.schema.name)])
        }
        return M.schema
    }
}

extension SyncClient {
    /// Opens a stream of typed objects. The part that the device holds can be read at once, and the rest is requested.
    ///
    /// - Parameters:
    ///   - name: the name of the stream.
    ///   - models: the models of the objects that are read and written.
    ///   - start: the position where reading begins on a device that holds nothing of the stream yet.
    /// - Throws: `SchemaError` with all faults of the schemas; then the stream is not opened. What `open` throws.
    @inline(never)
    public func open(
        _ name: String,
        models: [any Model.Type],
        from start: StartPosition = .snapshot
    ) throws -> Dataset {
        // The optimiser of Swift 6.3 crashes on some async functions into which it has inlined this one.

        // The check comes first, because a stream of models with faults is not opened.
        try Dataset.check(models)
        return Dataset(try open(name, from: start), checked: models)
    }
}
