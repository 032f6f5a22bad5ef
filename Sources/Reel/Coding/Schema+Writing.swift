internal import ReelClient

extension Schema {
    /// Returns the change that makes an object of a value. Its guards make sure that no constant is written twice.
    func insertion(of value: M) throws(ModelProblem) -> SyncChange {
        do throws(FieldValueError) {
            _ = try value.id.json()
        } catch {
            throw ModelProblem(.id, ObjectName(name, id: value.id.text), found: error.found, expected: error.expected)
        }
        var change = SyncChange.insert(name, id: value.id.text)
        for field in fields {
            if let json = try stored(field, of: value) { change.fields[field.name] = json }
            if field.kind == .constant {
                change.guards[field.name] = -1
                if let formerly = field.formerly { change.guards[formerly] = -1 }
            }
        }
        return change
    }

    /// Returns the change that makes an object of this device show a value, by plain writes. Fields that show it
    /// already, and fields that the schema does not know, stay. Nil if the object shows the value already.
    ///
    /// The object may be one that the model cannot read: the change repairs it.
    ///
    /// - Parameters:
    ///   - value: the value that the object gets.
    ///   - present: the fields of the object.
    func replacement(by value: M, in present: FieldMap<JSONValue>) throws(ModelProblem) -> SyncChange? {
        var change = SyncChange.update(name, id: value.id.text)
        for field in fields {
            let after = try stored(field, of: value)
            let stored = field.stored { present[$0] }
            if field.kind == .constant, stored == nil {
                guard let after else { continue }
                change.fields[field.name] = after
                change.guards[field.name] = -1
                continue
            }
            if let shown = shown(field, stored, value.id) {
                let before = try self.stored(field, of: shown)
                if before == after { continue }
                try refuseChange(of: field, from: before, to: after, id: value.id)
            }
            write(field, after ?? .null, to: &change, in: present)
        }
        return change.fields.isEmpty ? nil : change
    }

    /// Returns a value whose property shows the stored value of a field; nil if the property cannot show it.
    private func shown(_ field: SchemaField<M>, _ stored: JSONValue?, _ id: M.ID) -> M? {
        var model = M(id: id)
        do throws(FieldValueError) {
            if let stored { try field.read(stored, &model) }
            return model
        } catch {
            return nil
        }
    }

    /// Returns the smallest change that has the effect of an edit: operations for fields that merge, writes for
    /// others, and nothing for a field that the edit leaves as it is. Nil if the edit changes nothing.
    ///
    /// - Parameters:
    ///   - old: the value before the edit.
    ///   - new: the value after the edit.
    ///   - present: the fields of the object on which the change is performed. They may differ from those of `old`.
    func difference(
        from old: M,
        to new: M,
        in present: FieldMap<JSONValue>
    ) throws(ModelProblem) -> SyncChange? {
        guard old.id == new.id else {
            let object = ObjectName(name, id: old.id.text)
            throw ModelProblem(.id, object, found: "the id \(new.id) after a change", expected: "the same id")
        }
        var change = SyncChange.update(name, id: new.id.text)
        for field in fields {
            if let operate = field.operate {
                let stored = field.stored { present[$0] }
                let operation = try reporting(field, new.id) { () throws(FieldValueError) in
                    try operate(old, new, stored)
                }
                guard let operation else { continue }
                if present[field.name] != nil || stored == nil {
                    change.operations[field.name] = operation
                } else {
                    // An operation counts on the field of the same name, so the former value is taken along.
                    let value = try self.stored(field, of: new)
                    let applied = operation.applied(to: stored ?? .null, isAbsentSafe: true)
                    change.fields[field.name] = applied ?? value ?? JSONValue.null
                }
                continue
            }
            let (before, after) = (try stored(field, of: old), try stored(field, of: new))
            if before == after { continue }
            try refuseChange(of: field, from: before, to: after, id: new.id)
            write(field, after ?? .null, to: &change, in: present)
        }
        return change.fields.isEmpty && change.operations.isEmpty ? nil : change
    }

    /// Throws a problem if a constant of an object differs from its earlier value. Only a writer that does not use the
    /// schema can have changed it.
    ///
    /// - Parameters:
    ///   - original: the earlier value of the object.
    ///   - present: the fields of the object.
    func checkConstants(of original: M, in present: FieldMap<JSONValue>) throws(ModelProblem) {
        for field in fields where field.kind == .constant {
            let (before, json) = (try stored(field, of: original), field.stored { present[$0] })
            if let shown = shown(field, json, original.id), try stored(field, of: shown) == before { continue }
            try refuseChange(of: field, from: before, to: json, id: original.id)
        }
    }

    /// Returns the JSON value of a field; nil if the field is absent for this value.
    func stored(_ field: SchemaField<M>, of value: M) throws(ModelProblem) -> JSONValue? {
        let json = try reporting(field, value.id) { () throws(FieldValueError) in try field.write(value) }
        // `nil` beside a JSON value would be the value `null`.
        return json == field.kind.absent ? .none : .some(json)
    }

    private func write(
        _ field: SchemaField<M>,
        _ json: JSONValue,
        to change: inout SyncChange,
        in present: FieldMap<JSONValue>
    ) {
        change.fields[field.name] = json
        // Without the field, its former name would be read again.
        if json == .null, let formerly = field.formerly, present[formerly] != nil { change.fields[formerly] = .null }
    }

    private func refuseChange(
        of field: SchemaField<M>,
        from old: JSONValue?,
        to new: JSONValue?,
        id: M.ID
    ) throws(ModelProblem) {
        guard field.kind == .constant else { return }
        throw ModelProblem(
            .changedConstant,
            ObjectName(name, id: id.text),
            field: field.name,
            found: (new ?? .null).excerpt,
            expected: "the constant \((old ?? .null).excerpt)"
        )
    }

    private func reporting<T>(
        _ field: SchemaField<M>,
        _ id: M.ID,
        _ body: () throws(FieldValueError) -> T
    ) throws(ModelProblem) -> T {
        do throws(FieldValueError) {
            return try body()
        } catch {
            throw ModelProblem(error, ObjectName(name, id: id.text), field: field.name)
        }
    }
}
