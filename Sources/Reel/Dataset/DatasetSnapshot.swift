public import ReelClient

/// The typed objects of a stream at one moment. Later changes do not change it. Safe on any thread.
///
/// The device's storage keeps old data for it, so release it soon. `Dataset.read` lends one for the time of a closure.
public struct DatasetSnapshot: Sendable {
    private let snapshot: StreamSnapshot
    private let models: [any Model.Type]
    private let reads: ModelReads?

    /// Creates the typed view of a moment.
    ///
    /// - Parameters:
    ///   - snapshot: the untyped moment.
    ///   - models: the models of the dataset.
    ///   - reads: notes which models are read; nil: it is not asked.
    init(_ snapshot: StreamSnapshot, _ models: [any Model.Type], _ reads: ModelReads? = nil) {
        (self.snapshot, self.models, self.reads) = (snapshot, models, reads)
    }

    /// The untyped objects of the same moment.
    public var stream: StreamSnapshot {
        reads?.noteAll()
        return snapshot
    }

    /// True if the whole stream has arrived on this device. An object that is absent then does not exist.
    public var isComplete: Bool { snapshot.isComplete }

    /// Returns an object; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Throws: `ModelProblem` for an object that the model cannot read. `SchemaError` for a model that the dataset
    ///   was not opened with. A code that begins with `store_` if the store failed.
    public func object<M: Model>(_ id: ModelID<M>) throws -> M? {
        let schema = try schema(of: M.self)
        return try snapshot.object(schema.name, id: id.text).map(schema.value)
    }

    /// Returns true if an own event that has changed or deleted an object is not confirmed yet; see
    /// `Dataset.isPending`.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with.
    public func isPending<M: Model>(_ id: ModelID<M>) throws(SchemaError) -> Bool {
        snapshot.isPending(try schema(of: M.self).name, id: id.text)
    }

    /// Returns the target of a reference; nil if the reference dangles.
    ///
    /// - Throws: What `object` throws.
    public func resolve<M: Model>(_ reference: Ref<M>) throws -> M? { try object(reference.id) }

    /// Returns all objects of a model, and the problems of those that it cannot read.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with. A code that begins with `store_` if
    ///   the store failed.
    public func objects<M: Model>(of model: M.Type) throws -> ModelObjects<M> {
        let schema = try schema(of: model)
        return ModelObjects(try snapshot.objects(schema.name), schema)
    }

    /// Returns the rows of a query at this moment.
    ///
    /// - Throws: The error of a filter. What `objects` throws.
    public func rows<M: Model>(of query: Query<M>) throws -> QueryRows<M> {
        try rows(of: query, first: query.definition.rowsMax, after: nil)
    }

    /// Returns some rows of a query.
    ///
    /// - Parameters:
    ///   - query: the query, whose limit has no effect.
    ///   - countMax: the maximum number of rows; nil: all.
    ///   - cursor: the place after which the rows begin; nil: the beginning.
    func rows<M: Model>(
        of query: Query<M>,
        first countMax: Int?,
        after cursor: QueryCursor?
    ) throws -> QueryRows<M> {
        let schema = try schema(of: M.self)
        let isBeyond = try cursor?.isBeyond(query.definition.order)
        var (found, problems): ([LoadedObject], [ModelProblem]) = ([], [])
        var hasPending = false
        for object in try snapshot.objects(schema.name) {
            let value: M
            do throws(ModelProblem) {
                value = try schema.value(of: object)
            } catch {
                problems.append(error)
                continue
            }
            hasPending = hasPending || object.isPending
            guard try query.definition.condition.includes(value) else { continue }
            let included = TypedObject(value, isPending: object.isPending)
            if isBeyond?(included) != true { found.append(included) }
        }
        return QueryRows(
            query.definition.order.first(countMax, of: found),
            QueryMoment(
                problems: problems,
                isComplete: snapshot.isComplete,
                seq: snapshot.seq,
                hasPending: hasPending
            )
        )
    }

    private func schema<M: Model>(of model: M.Type) throws(SchemaError) -> Schema<M> {
        let schema = try Dataset.schema(of: model, in: models)
        reads?.note(schema.name)
        return schema
    }
}

extension Dataset {
    /// Calls `body` with the dataset at one moment, so that several reads, of any models, agree with each other. Can be
    /// called on any thread, and from code that cannot await.
    ///
    /// - Parameter body: reads objects.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`. `closed` if the stream or the client is closed. A code that begins with `store_`
    ///   if the store failed.
    public func read<T>(_ body: (DatasetSnapshot) throws -> T) throws -> T {
        try stream.read { try body(DatasetSnapshot($0, models)) }
    }
}
