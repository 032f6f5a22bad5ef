internal import ReelClient

extension SyncChange {
    /// Returns the fields of an object after an insert or update, as the stream computes them. Nil if an operation does
    /// not fit its field.
    func applied(to present: FieldMap<JSONValue>) -> FieldMap<JSONValue>? {
        var fields = present
        // `nil` beside a JSON value would be the value `null`.
        for (name, value) in self.fields { fields[name] = value == .null ? .none : .some(value) }
        for (name, operation) in operations {
            guard let value = operation.applied(to: present[name] ?? .null, isAbsentSafe: true) else { return nil }
            fields[name] = value
        }
        return fields
    }
}
