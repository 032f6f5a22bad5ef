internal import ReelClient
internal import ReelCore

/// A condition of a write on properties of the object, which every device checks at the same place of the log.
public struct Condition<M: Model>: Sendable {
    private let keyPaths: [any PartialKeyPath<M> & Sendable]
    private let original: M

    /// Requires that no other event writes the properties before this one. If one does, the write is rejected as a
    /// whole, with the code `guard`.
    ///
    /// The write throws `guard` at once if a property of the object, as this device shows it, differs from `original`.
    /// It also does so while an own write of the property waits, because a condition names an event of the log: await
    /// the outcome of that write first.
    ///
    /// - Parameters:
    ///   - keyPaths: the properties, which must be in the schema.
    ///   - original: the value from which the write was made. The write throws `ModelProblem` if it is the value of
    ///     another object than the one that is written.
    public static func unchanged(_ keyPaths: any PartialKeyPath<M> & Sendable..., since original: M) -> Condition {
        Condition(keyPaths: keyPaths, original: original)
    }

    /// Returns the guards that stand for the condition.
    ///
    /// - Parameters:
    ///   - schema: the schema of the model.
    ///   - object: the object as this device shows it.
    func guards(_ schema: Schema<M>, _ object: SyncObject) throws -> FieldMap<Int64> {
        guard original.id == M.ID(object.name.id) else {
            throw ModelProblem(
                .id,
                object.name,
                found: "a condition made from the object \(original.id)",
                expected: "a value of the object that is written"
            )
        }
        let present = try schema.value(of: object)
        var guards: FieldMap<Int64> = [:]
        for keyPath in keyPaths {
            guard let field = schema.field(at: keyPath) else {
                throw ModelProblem(
                    .property,
                    object.name,
                    found: "a condition on a property outside the schema",
                    expected: "a property of the schema"
                )
            }
            guard try schema.stored(field, of: present) == schema.stored(field, of: original) else {
                throw ReelError(.guard, "found \(object.name).\(field.name), which has changed: read the object again")
            }
            for name in [field.name] + (field.formerly.map { [$0] } ?? []) {
                guard let stored = object.fields[name] else {
                    guards[name] = -1
                    continue
                }
                guard let seq = stored.seq else {
                    throw ReelError(
                        .guard,
                        "found \(object.name).\(name), which an own event that waits has written: await its outcome"
                    )
                }
                guards[name] = seq
            }
        }
        return guards
    }
}
