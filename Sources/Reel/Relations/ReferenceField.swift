internal import ReelClient

/// A field of references, without the types of its models.
struct ReferenceField: Sendable {
    /// The model whose objects have the reference.
    let model: String
    /// Returns the target of an object's reference. Nil if the reference is absent, or holds anything but an id.
    let target: @Sendable (RelatedObject) -> ObjectName?
    /// Returns true if the field of an object is absent.
    let isAbsent: @Sendable (RelatedObject) -> Bool
    /// Returns the problem of an object that its model cannot read; nil if the model can read it.
    let problem: @Sendable (RelatedObject) -> ModelProblem?

    /// Creates the field of a property.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with, and for a property that the schema
    ///   does not name.
    init<M: Model, Target: Model>(
        _ keyPath: any WritableKeyPath<M, Ref<Target>?> & Sendable,
        in dataset: Dataset
    ) throws(SchemaError) {
        let (schema, targets) = (try dataset.schema(of: M.self), try dataset.schema(of: Target.self).name)
        guard let field = schema.field(at: keyPath) else {
            throw SchemaError(faults: [.unknownProperty(model: schema.name)])
        }
        model = schema.name
        target = { object in
            guard let json = field.stored(object.field), let id = try? ModelID<Target>(json: json) else { return nil }
            return ObjectName(targets, id: id.text)
        }
        isAbsent = { object in field.stored(object.field) == nil }
        problem = { object in
            do throws(ModelProblem) {
                _ = try schema.value(id: object.name.id, object.field)
                return nil
            } catch {
                return error
            }
        }
    }
}
