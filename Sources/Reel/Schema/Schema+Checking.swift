internal import ReelClient
internal import ReelCore

extension Schema {
    /// Returns all faults of the schema. `Dataset` refuses a schema with a fault.
    public func faults() -> [SchemaFault] { badNames() + clashes() + badDefaults() }

    private func badNames() -> [SchemaFault] {
        let names = [name] + fields.map(\.name) + fields.compactMap(\.formerly)
        return names.filter { !(1...Limits.name ~= $0.utf8.count) }.map { .badName(model: name, name: $0) }
    }

    private func clashes() -> [SchemaFault] {
        var faults: [SchemaFault] = []
        var (names, formerNames): (Set<String>, Set<String>) = ([], [])
        var owners: [AnyKeyPath: String] = [:]
        for field in fields {
            if !names.insert(field.name).inserted { faults.append(.fieldTwice(model: name, field: field.name)) }
            if let other = owners.updateValue(field.name, forKey: field.keyPath) {
                faults.append(.propertyTwice(model: name, fields: [other, field.name]))
            }
        }
        for field in fields {
            guard let formerly = field.formerly else { continue }
            if names.contains(formerly) || !formerNames.insert(formerly).inserted {
                faults.append(.formerNameTaken(model: name, field: field.name, formerly: formerly))
            }
        }
        let places = fields.filter { $0.kind == .order }.map(\.name)
        if places.count > 1 { faults.append(.orderTwice(model: name, fields: places)) }
        return faults
    }

    /// Returns the fields whose default differs from what an absent field stands for in the stream.
    private func badDefaults() -> [SchemaFault] {
        let model = M(id: ModelID("default"))
        return fields.compactMap { field in
            let expected = field.kind.absent
            // A property that is never absent after its first write can have any default.
            if expected == .null, !field.isOptional { return nil }
            do throws(FieldValueError) {
                let found = try field.write(model)
                if found == expected { return nil }
                return .badDefault(
                    model: name,
                    field: field.name,
                    found: found.excerpt,
                    expected: expected == .null ? "nil" : expected.description
                )
            } catch {
                return .badDefault(model: name, field: field.name, found: error.found, expected: error.expected)
            }
        }
    }
}
