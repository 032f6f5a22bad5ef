public import ReelClient

/// The difference between an object of one model at a `ChangeToken` and the same object now.
public struct ModelChange<M: Model>: Sendable, Identifiable {
    /// The id of the object.
    public let id: ModelID<M>
    /// The kind of the change.
    public let kind: ObjectChange.Kind
    /// The causes of the change.
    public let origin: ObjectChange.Origin
    /// The object now, with all own events. Nil if it was deleted, or if the model cannot read it.
    public let value: M?
    /// The object at the token. Nil if it did not exist, if the model could not read it, or if a changed field had a
    /// value of more than 1,024 bytes.
    public let old: M?
    /// The reason for which the model cannot read the object; nil: it can, or the object was deleted.
    public let problem: ModelProblem?
}

/// The changes of a dataset since a `ChangeToken`.
public struct DatasetChanges: Sendable {
    /// The changes of the stream, with those of objects of other models.
    public let stream: StreamChanges
    private let dataset: Dataset

    init(_ stream: StreamChanges, of dataset: Dataset) { (self.stream, self.dataset) = (stream, dataset) }

    /// The token for the next call. Store it together with what was made from the changes.
    public var token: ChangeToken { stream.token }
    /// True if this device does not know the changes since the token. Then read all objects with `objects(of:)`.
    public var isReset: Bool { stream.isReset }

    /// Returns the changes of the objects of a model, sorted by the bytes of their ids.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with.
    public func changes<M: Model>(of model: M.Type) throws(SchemaError) -> [ModelChange<M>] {
        let schema = try dataset.schema(of: model)
        return stream.objects.filter { schema.isModel(of: $0.name) }.map { Self.change($0, schema) }
    }

    /// Returns all objects of a model at the moment of the token.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with. A code that begins with `store_` if
    ///   the store failed.
    public func objects<M: Model>(of model: M.Type) throws -> ModelObjects<M> {
        let schema = try dataset.schema(of: model)
        return ModelObjects(try stream.snapshot.objects(schema.name), schema)
    }

    private static func change<M: Model>(_ change: ObjectChange, _ schema: Schema<M>) -> ModelChange<M> {
        var (value, problem): (M?, ModelProblem?)
        do throws(ModelProblem) {
            value = try change.object.map { (object) throws(ModelProblem) in try schema.value(of: object) }
        } catch {
            problem = error
        }
        return ModelChange(
            id: ModelID(change.name.id),
            kind: change.kind,
            origin: change.origin,
            value: value,
            old: change.oldFields.flatMap { fields in try? schema.value(id: change.name.id) { fields[$0] } },
            problem: problem
        )
    }
}

extension ObjectChange {
    /// The fields of the object at the token; nil if it did not exist, or if an old value is not known.
    fileprivate var oldFields: FieldMap<JSONValue>? {
        if kind == .inserted { return nil }
        var fields: FieldMap<JSONValue> = [:]
        for (name, field) in object?.fields ?? [:] { fields[name] = field.value }
        for (name, old) in changed {
            switch old {
            case .absent: fields[name] = nil
            case .value(let value): fields[name] = value
            case .tooLong: return nil
            }
        }
        return fields
    }
}

extension Dataset {
    /// Returns the objects that look different now than at a token, also across restarts of the app. Each part of an
    /// app can keep its own token. See `SyncStream.changes(since:)`.
    ///
    /// - Parameter token: the token of the last answer; nil: there is none yet, and the answer is a reset.
    /// - Returns: The changes up to now.
    /// - Throws: What `SyncStream.changes(since:)` throws.
    public func changes(since token: ChangeToken?) async throws -> DatasetChanges {
        DatasetChanges(try await stream.changes(since: token), of: self)
    }
}
