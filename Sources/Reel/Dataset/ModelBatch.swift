internal import ReelClient
internal import ReelCore

/// The writes of one event, made from the objects as this device shows them when the event is queued. A later write
/// sees the earlier ones.
public struct ModelBatch {
    let dataset: Dataset
    private let present: PresentObjects
    private var changes: [SyncChange] = []
    /// The fields of the objects that earlier writes of the batch have changed; nil: the object was deleted.
    private var changed: [ObjectName: FieldMap<JSONValue>?] = [:]

    init(_ dataset: Dataset, _ present: PresentObjects) {
        (self.dataset, self.present) = (dataset, present)
    }

    /// The event with all writes; nil if there is none.
    var event: SyncEvent? {
        changes.count > 1 ? .batch(changes) : changes.first.map { SyncEvent($0) }
    }

    /// Returns an object with the earlier writes of the batch; nil if it does not exist on this device.
    ///
    /// - Throws: `ModelProblem` for an object that the model cannot read. A code that begins with `store_` if the store
    ///   failed.
    public func object<M: Model>(_ id: ModelID<M>) throws -> M? {
        let schema = try dataset.schema(of: M.self)
        guard let fields = try fields(ObjectName(schema.name, id: id.text)) else { return nil }
        return try schema.value(id: id.text) { fields[$0] }
    }

    /// Adds an insert; see `Dataset.insert`.
    ///
    /// - Throws: `ModelProblem` for a value that no field can hold.
    public mutating func insert<M: Model>(_ value: M) throws {
        append(try dataset.schema(of: M.self).insertion(of: value), to: try fields(name(of: value)) ?? [:])
    }

    /// Adds the difference that a closure makes; see `Dataset.update`.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - condition: a condition on the object as it was before the batch.
    ///   - body: changes the value.
    /// - Throws: The error of `body`. What `Dataset.update` throws, except the errors of `publish`.
    public mutating func update<M: Model>(
        _ id: ModelID<M>,
        if condition: Condition<M>? = nil,
        _ body: (inout M) throws -> Void
    ) throws {
        let schema = try dataset.schema(of: M.self)
        let fields = try existingFields(ObjectName(schema.name, id: id.text))
        let old = try schema.value(id: id.text) { fields[$0] }
        var new = old
        try body(&new)
        try append(try schema.difference(from: old, to: new, in: fields), to: fields, if: condition)
    }

    /// Adds the difference of two values; see `Dataset.save`.
    ///
    /// - Parameters:
    ///   - value: the value after the edit.
    ///   - original: the value before the edit.
    ///   - condition: a condition on the object as it was before the batch.
    /// - Throws: What `Dataset.save` throws, except the errors of `publish`.
    public mutating func save<M: Model>(
        _ value: M,
        changedFrom original: M,
        if condition: Condition<M>? = nil
    ) throws {
        let schema = try dataset.schema(of: M.self)
        let fields = try existingFields(name(of: value))
        try schema.checkConstants(of: original, in: fields)
        try append(try schema.difference(from: original, to: value, in: fields), to: fields, if: condition)
    }

    /// Adds the writes that make an object show a value; see `Dataset.replace`.
    ///
    /// - Throws: What `Dataset.replace` throws, except the errors of `publish`.
    public mutating func replace<M: Model>(_ value: M) throws {
        guard let fields = try fields(name(of: value)) else { return try insert(value) }
        guard let change = try dataset.schema(of: M.self).replacement(by: value, in: fields) else { return }
        append(change, to: fields)
    }

    /// Adds the write of a place in a list; see `Dataset.move`.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - lower: the object before the place; nil: the place is the first.
    ///   - upper: the object after the place; nil: the place is the last.
    /// - Throws: What `Dataset.move` throws, except the errors of `publish`.
    public mutating func move<M: Model>(_ id: ModelID<M>, between lower: ModelID<M>?, and upper: ModelID<M>?) throws {
        let schema = try dataset.schema(of: M.self)
        guard let place = schema.fields.first(where: { $0.kind == .order })?.keyPath as? WritableKeyPath<M, Rank>
        else {
            let name = ObjectName(schema.name, id: id.text)
            throw ModelProblem(
                .property,
                name,
                found: "a schema without `Order`",
                expected: "a line such as `Order(\"rank\", \\.rank)` for a property of the type `Rank`"
            )
        }
        let rank = Rank.between(
            try lower.map { try existing($0)[keyPath: place] },
            try upper.map { try existing($0)[keyPath: place] }
        )
        try update(id) { $0[keyPath: place] = rank }
    }

    /// Adds the delete of an object; see `Dataset.delete`.
    ///
    /// - Throws: What `Dataset.delete` throws, except the errors of `publish`.
    public mutating func delete<M: Model>(_ id: ModelID<M>, if condition: Condition<M>? = nil) throws {
        let schema = try dataset.schema(of: M.self)
        let name = ObjectName(schema.name, id: id.text)
        var change = SyncChange.delete(name.model, id: name.id)
        if let condition { change.guards = try guards(condition, schema, name) }
        append(change, deleting: name)
    }

    /// Adds the delete of an object without a condition.
    mutating func delete(_ name: ObjectName) { append(SyncChange.delete(name.model, id: name.id), deleting: name) }

    // MARK: Objects

    private func name<M: Model>(of value: M) -> ObjectName { ObjectName(M.schema.name, id: value.id.text) }

    private func existing<M: Model>(_ id: ModelID<M>) throws -> M {
        let fields = try existingFields(ObjectName(M.schema.name, id: id.text))
        return try M.schema.value(id: id.text) { fields[$0] }
    }

    /// Returns the fields of an object with the earlier writes of the batch; nil if it does not exist on this device.
    func fields(_ name: ObjectName) throws -> FieldMap<JSONValue>? {
        if let fields = changed[name] { return fields }
        guard let object = try present.object(name.model, id: name.id) else { return nil }
        var fields: FieldMap<JSONValue> = [:]
        for (name, field) in object.fields { fields[name] = field.value }
        return fields
    }

    /// Returns all objects of a model with the earlier writes of the batch, sorted by the bytes of their ids.
    func related(ofModel model: String) throws -> [RelatedObject] {
        var found = try present.objects(model).filter { changed[$0.name] == nil }.map { RelatedObject($0) }
        for (name, fields) in changed where name.model.utf8.elementsEqual(model.utf8) {
            if let fields { found.append(RelatedObject(name: name) { fields[$0] }) }
        }
        return found.sorted { $0.name.id.utf8.lexicographicallyPrecedes($1.name.id.utf8) }
    }

    /// Returns true if an object was deleted before the batch, or by an earlier write of it.
    func isDeleted(_ name: ObjectName) throws -> Bool {
        if let fields = changed[name] { return fields == nil }
        return try present.isDeleted(name.model, id: name.id)
    }

    private func existingFields(_ name: ObjectName) throws -> FieldMap<JSONValue> {
        if let fields = try fields(name) { return fields }
        if try isDeleted(name) {
            throw ReelError(.deleted, "found a change of \(name), which was deleted")
        }
        throw missing("a change of", name)
    }

    /// Returns the error for an object that cannot be changed because it is not there. While the first state of a
    /// stream arrives, reads show objects that writes cannot build on yet.
    private func missing(_ what: String, _ name: ObjectName) -> ReelError {
        var message = "found \(what) \(name), which this device does not have"
        if case .loading = dataset.stream.status.content { message += " yet: the state of the stream still arrives" }
        return ReelError(.noObject, message)
    }

    // MARK: Changes

    private mutating func append<M: Model>(
        _ change: SyncChange?,
        to fields: FieldMap<JSONValue>,
        if condition: Condition<M>?
    ) throws {
        guard var change else { return }
        if let condition {
            let name = ObjectName(change.model, id: change.id)
            change.guards = change.guards.merging(try guards(condition, M.schema, name))
        }
        append(change, to: fields)
    }

    private mutating func append(_ delete: SyncChange, deleting name: ObjectName) {
        changes.append(delete)
        changed[name] = .some(nil)
    }

    private mutating func append(_ change: SyncChange, to fields: FieldMap<JSONValue>) {
        changes.append(change)
        changed[ObjectName(change.model, id: change.id)] = change.applied(to: fields) ?? fields
    }

    private func guards<M: Model>(
        _ condition: Condition<M>,
        _ schema: Schema<M>,
        _ name: ObjectName
    ) throws -> FieldMap<Int64> {
        guard let object = try present.object(name.model, id: name.id) else {
            throw missing("a condition on", name)
        }
        return try condition.guards(schema, object)
    }
}

@available(*, unavailable)
extension ModelBatch: Sendable {}
