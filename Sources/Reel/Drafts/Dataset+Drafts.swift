internal import ReelClient

extension Dataset {
    /// Returns a draft of a text, for a text view.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - keyPath: the property, which the schema must name as `Text`.
    /// - Throws: `no_object` if this device does not have the object. `ModelProblem` for another property, and for a
    ///   field that holds no text. `SchemaError` for a model that the dataset was not opened with. What
    ///   `SyncStream.object` throws.
    public func draft<M: Model>(
        of id: ModelID<M>,
        _ keyPath: any WritableKeyPath<M, String> & Sendable
    ) throws -> TextDraft {
        TextDraft(try DraftSession(stream, field(of: id, keyPath, .text)))
    }

    /// Returns a draft of bytes, to edit them at offsets.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - keyPath: the property, which the schema must name as `Bytes`.
    /// - Throws: `no_object` if this device does not have the object. `ModelProblem` for another property, and for a
    ///   field that holds no bytes. `SchemaError` for a model that the dataset was not opened with. What
    ///   `SyncStream.object` throws.
    public func draft<M: Model, Value: RangeReplaceableCollection<UInt8> & Sendable>(
        of id: ModelID<M>,
        _ keyPath: any WritableKeyPath<M, Value> & Sendable
    ) throws -> BytesDraft {
        BytesDraft(try DraftSession(stream, field(of: id, keyPath, .bytes)))
    }

    private func field<M: Model>(
        of id: ModelID<M>,
        _ keyPath: PartialKeyPath<M>,
        _ kind: SchemaField<M>.Kind
    ) throws -> DraftField {
        let schema = try schema(of: M.self)
        let object = ObjectName(schema.name, id: id.text)
        guard let field = schema.field(at: keyPath), field.kind == kind else {
            let found = schema.field(at: keyPath).map { "the field \($0.name) of the kind \($0.kind)" }
            throw ModelProblem(
                .property,
                object,
                found: found ?? "a property outside the schema",
                expected: kind == .text ? "a field of the kind Text" : "a field of the kind Bytes"
            )
        }
        return DraftField(object: object, name: field.name, formerly: field.formerly)
    }
}
