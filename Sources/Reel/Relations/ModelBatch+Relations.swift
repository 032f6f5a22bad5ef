internal import ReelClient

extension ModelBatch {
    /// Adds the delete of an object, and of all objects that this device knows to refer to it, directly or through
    /// others; see `Dataset.delete(_:cascading:_:)`. The search sees the earlier writes of the batch. References in a
    /// cycle are followed once.
    ///
    /// All objects count for the limit of 100 writes of one event. `Dataset.delete(_:cascading:_:)` makes several
    /// events for more. The search reads all objects of the models, and the client waits for it.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - first: a reference through which objects are deleted.
    ///   - others: further references, of the same model or of others.
    /// - Returns: The problems of the objects that stay because their model cannot read them.
    /// - Throws: `no_object` if this device does not have the object. `SchemaError` for a model that the dataset was
    ///   not opened with, and for a property that the schema does not name. A code that begins with `store_` if the
    ///   store failed.
    @discardableResult
    public mutating func delete<M: Model, A: Model, B: Model, each Source: Model, each Target: Model>(
        _ id: ModelID<M>,
        cascading first: any WritableKeyPath<A, Ref<B>?> & Sendable,
        _ others: repeat any WritableKeyPath<each Source, Ref<each Target>?> & Sendable
    ) throws -> [ModelProblem] {
        var references = [try ReferenceField(first, in: dataset)]
        repeat references.append(try ReferenceField(each others, in: dataset))
        var cascade = Cascade(ObjectName(try dataset.schema(of: M.self).name, id: id.text), references)
        try cascade.checkRoot(self)
        for name in try cascade.search(self) where try !isDeleted(name) { delete(name) }
        return cascade.problems
    }
}

extension ModelBatch: RelatedObjects {
    func related(_ name: ObjectName) throws -> RelatedObject? {
        try fields(name).map { fields in RelatedObject(name: name) { fields[$0] } }
    }
}
