internal import ReelClient

extension FieldOperation {
    /// Returns the value of a field after the operation, as the stream computes it. Nil if the operation does not fit
    /// the value.
    func applied(to value: JSONValue?) -> JSONValue? {
        switch self {
        case .increment(let amount):
            guard let number = (value ?? 0).number, (number + amount).isFinite else { return nil }
            return .number(number + amount)
        case .change(let add, let remove):
            guard let elements = (value ?? []).array else { return nil }
            let set = Set(elements).subtracting(remove).union(add)
            let sorted = set.map { ($0, $0.description) }.sorted { $0.1.utf8.lexicographicallyPrecedes($1.1.utf8) }
            return .array(sorted.map(\.0))
        case .splice(let splices):
            guard var text = (value ?? "").string else { return nil }
            for splice in splices {
                let scalars = text.unicodeScalars
                guard splice.offset >= 0, splice.removed >= 0,
                    let start = scalars.index(
                        scalars.startIndex,
                        offsetBy: Int(clamping: splice.offset),
                        limitedBy: scalars.endIndex
                    ),
                    let end = scalars.index(start, offsetBy: Int(clamping: splice.removed), limitedBy: scalars.endIndex)
                else { return nil }
                text.unicodeScalars.replaceSubrange(start..<end, with: splice.text.unicodeScalars)
            }
            return .string(text)
        }
    }
}

extension SyncChange {
    /// Returns the fields of an object after an insert or update, as the stream computes them. Nil if an operation does
    /// not fit its field.
    func applied(to present: FieldMap<JSONValue>) -> FieldMap<JSONValue>? {
        var fields = present
        // `nil` beside a JSON value would be the value `null`.
        for (name, value) in self.fields { fields[name] = value == .null ? .none : .some(value) }
        for (name, operation) in operations {
            guard let value = operation.applied(to: present[name]) else { return nil }
            fields[name] = value
        }
        return fields
    }
}
