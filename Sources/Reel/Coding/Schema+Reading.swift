public import ReelClient

extension Schema {
    /// Returns the value of an object. A property whose field was never written has its default.
    ///
    /// - Throws: `ModelProblem` if the object is of another model, lacks a constant, or has a field that its property
    ///   cannot have.
    public func value(of object: SyncObject) throws(ModelProblem) -> M {
        guard isModel(of: object.name) else {
            throw ModelProblem(.model, object.name, found: "an object of another model", expected: "the model \(name)")
        }
        var index = 0
        return try value(id: object.name.id) { object.value($0, near: &index) }
    }

    /// Returns true if the name is that of an object of this model. The stream compares bytes.
    func isModel(of object: ObjectName) -> Bool { object.model.utf8.elementsEqual(name.utf8) }

    /// Returns the value of the object whose fields `stored` returns by name.
    func value(id: String, _ stored: (String) -> JSONValue?) throws(ModelProblem) -> M {
        var model = M(id: ModelID(id))
        guard model.id == ModelID(id) else {
            throw ModelProblem(
                .id,
                ObjectName(name, id: id),
                found: "the id \(model.id) after `init(id:)`",
                expected: "the id \(id)"
            )
        }
        for field in fieldsByName {
            guard let json = field.stored(stored) else {
                if field.kind != .constant || field.isOptional { continue }
                let expected = "a constant, which is written with the insert"
                let object = ObjectName(name, id: id)
                throw ModelProblem(.missingConstant, object, field: field.name, found: "nothing", expected: expected)
            }
            do throws(FieldValueError) {
                try field.read(json, &model)
            } catch {
                throw ModelProblem(error, ObjectName(name, id: id), field: field.name)
            }
        }
        return model
    }
}

extension Schema {
    /// Returns true if two values of one object were read from equal fields.
    func isEqual(_ a: M, _ b: M) -> Bool {
        fields.allSatisfy { field in
            do throws(FieldValueError) { return try field.write(a) == field.write(b) } catch { return false }
        }
    }
}

extension SchemaField {
    /// Returns the stored value of the field, under its former name until it is written under its present one.
    func stored(_ value: (String) -> JSONValue?) -> JSONValue? { value(name) ?? formerly.flatMap(value) }
}
