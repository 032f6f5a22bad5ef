// Two changes of one object as one change, for the reduction of the queue.
extension SyncChange {
    /// Returns true if both changes are of one object.
    func isSame(_ other: SyncChange) -> Bool {
        model.utf8.elementsEqual(other.model.utf8) && id.utf8.elementsEqual(other.id.utf8)
    }

    /// Returns true if no field is named by both changes.
    func isDisjoint(with other: SyncChange) -> Bool {
        other.fields.allSatisfy { !names($0.name) } && other.operations.allSatisfy { !names($0.name) }
    }

    private func names(_ name: String) -> Bool { fields[name] != nil || operations[name] != nil }

    /// Returns one change with the effect of this change followed by a later update of the same object; nil if there is
    /// none.
    ///
    /// The fold rejects the result exactly if it would reject this change, and exactly if it would reject the later
    /// one. So an operation is merged only with the same kind of operation on its field, or with a value that this
    /// change writes there. Otherwise a field of another type would reject one of the two changes alone.
    /// - Parameter makesObject: true if this change certainly makes its object, so that it has no other fields.
    func merging(_ later: SyncChange, makesObject: Bool) -> SyncChange? {
        guard operations.allSatisfy({ later.operations[$0.name] != nil }) else { return nil }
        var merged = self
        for (name, operation) in later.operations {
            if let value = fields[name] {
                guard let value = operation.applied(to: value, isAbsentSafe: makesObject) else { return nil }
                merged.fields[name] = value
            } else if let earlier = operations[name] {
                guard let both = earlier.merging(operation) else { return nil }
                merged.operations[name] = both
            } else {
                guard makesObject, let value = operation.applied(to: .null, isAbsentSafe: true) else { return nil }
                merged.fields[name] = value
            }
        }
        for (name, value) in later.fields { merged.fields[name] = value }
        return merged
    }
}

extension FieldOperation {
    /// Half of the largest number up to which doubles hold all integers. So the sum of two counts is exact.
    private static let countMax = 4_503_599_627_370_496.0

    /// True for a number that is a count: an integer that sums of a few others hold exactly.
    static func isCount(_ number: Double) -> Bool { number.rounded() == number && abs(number) <= countMax }

    /// Returns one operation with the effect of this operation followed by a later one; nil if there is none, or if a
    /// sum would be rounded.
    func merging(_ later: FieldOperation) -> FieldOperation? {
        switch (self, later) {
        case (.increment(let a), .increment(let b)):
            return Self.isCount(a) && Self.isCount(b) && Self.isCount(a + b) ? .increment(a + b) : nil
        case (.change(let add, let remove), .change(let laterAdd, let laterRemove)):
            var elements = ElementSet(add)
            elements.remove(laterRemove)
            elements.add(laterAdd)
            var removed = ElementSet(remove)
            removed.add(laterRemove)
            // The fold removes first, so an element that is added need not be removed before.
            removed.remove(elements.values)
            return .change(add: elements.values, remove: removed.values)
        case (.splice(let earlier), .splice(let later)):
            return .splice(later.reduce(into: earlier) { $0.append(merging: $1) })
        default: return nil
        }
    }

    /// Returns the value that the fold makes of a field that holds `value`; nil if the fold would reject the operation.
    /// `null` stands for an absent field.
    /// - Parameter isAbsentSafe: true if a splice may write an absent field plainly: no other device knows the object.
    package func applied(to value: JSONValue, isAbsentSafe: Bool) -> JSONValue? {
        switch (self, value) {
        case (.increment(let amount), .null): return .number(amount)
        case (.increment(let amount), .number), (.increment(let amount), .integer):
            guard let number = value.number, (number + amount).isFinite else { return nil }
            return .number(number + amount)
        case (.change(let add, let remove), .null), (.change(let add, let remove), .array):
            var elements = ElementSet(value.array ?? [])
            elements.remove(remove)
            elements.add(add)
            return .array(elements.sorted)
        case (.splice(let splices), .null) where isAbsentSafe: return Self.spliced("", splices)
        case (.splice(let splices), .string(let text)): return Self.spliced(text, splices)
        default: return nil
        }
    }

    private static func spliced(_ text: String, _ splices: [TextSplice]) -> JSONValue? {
        var text = text
        for splice in splices {
            guard let new = text.spliced(splice.offset, splice.removed, splice.text) else { return nil }
            text = new
        }
        return .string(text)
    }
}
