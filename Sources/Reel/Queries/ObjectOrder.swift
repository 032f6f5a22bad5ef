internal import ReelBase
internal import ReelClient

/// The order of a query's rows: the sort keys, then the bytes of the ids.
struct ObjectOrder: Sendable {
    var keys: [SortKey] = []

    /// Returns true if `a` comes before `b`.
    func precedes(_ a: LoadedObject, _ b: LoadedObject) -> Bool {
        for key in keys {
            let result = key.compare(a, b)
            if result != 0 { return result < 0 }
        }
        return a.key < b.key
    }

    /// Returns objects in this order.
    ///
    /// - Parameter objects: the objects, sorted by the bytes of their ids.
    func sorted(_ objects: [LoadedObject]) -> [LoadedObject] {
        // Each stable sort by one key keeps the order of the less significant keys.
        keys.reversed().reduce(objects) { $1.sort($0) }
    }

    /// Returns the first objects in this order, at most `count`.
    ///
    /// - Parameters:
    ///   - count: the maximum number of objects; nil: all.
    ///   - objects: the objects, sorted by the bytes of their ids.
    func first(_ count: Int?, of objects: [LoadedObject]) -> [LoadedObject] {
        guard let count, count < objects.count / 8 else {
            return count.map { Array(sorted(objects).prefix($0)) } ?? sorted(objects)
        }
        var first: [LoadedObject] = []
        for object in objects where count > 0 {
            if first.count == count {
                guard let last = first.last, precedes(object, last) else { continue }
                first.removeLast()
            }
            first.insert(object, at: first.partitioningIndex { precedes($0, object) })
        }
        return first
    }

    /// An identity of the order among those of its model.
    var signature: [SortSignature] { keys.map { SortSignature(keyPath: $0.keyPath, isDescending: $0.isDescending) } }
}

/// The identity of a sort key.
struct SortSignature: Hashable {
    let keyPath: AnyKeyPath
    let isDescending: Bool
}

/// A property by which a query sorts.
struct SortKey: Sendable {
    let keyPath: any AnyKeyPath & Sendable
    let isDescending: Bool
    /// Returns a negative number if the first object comes before the second, a positive one if it comes after, and 0
    /// if their properties are equal.
    let compare: @Sendable (LoadedObject, LoadedObject) -> Int
    /// Sorts objects by the property, and keeps the order of equal ones.
    let sort: @Sendable ([LoadedObject]) -> [LoadedObject]
    /// Returns the value of the property as JSON.
    let json: @Sendable (LoadedObject) throws(FieldValueError) -> JSONValue
    /// Returns a comparison of objects with a value in JSON.
    let comparison: @Sendable (JSONValue) throws(FieldValueError) -> (LoadedObject) -> Int

    /// Creates a sort key.
    ///
    /// - Parameters:
    ///   - keyPath: the property.
    ///   - isDescending: true if the largest value comes first.
    ///   - precedes: returns true if the first value is less than the second.
    init<M: Model, Value: FieldValue>(
        _ keyPath: any KeyPath<M, Value> & Sendable,
        isDescending: Bool,
        _ precedes: @escaping @Sendable (Value, Value) -> Bool
    ) {
        let isBefore: @Sendable (Value, Value) -> Bool = { isDescending ? precedes($1, $0) : precedes($0, $1) }
        let compare: @Sendable (Value, Value) -> Int = { a, b in
            if isBefore(a, b) { return -1 }
            return isBefore(b, a) ? 1 : 0
        }
        (self.keyPath, self.isDescending) = (keyPath, isDescending)
        self.compare = { compare($0.value(M.self)[keyPath: keyPath], $1.value(M.self)[keyPath: keyPath]) }
        sort = { objects in
            var values: [(value: Value, place: Int)] = []
            values.reserveCapacity(objects.count)
            for (place, object) in objects.enumerated() {
                values.append((object.value(M.self)[keyPath: keyPath], place))
            }
            values.sort { a, b in
                isBefore(a.value, b.value) || a.place < b.place && !isBefore(b.value, a.value)
            }
            return values.map { objects[$0.place] }
        }
        json = { (object) throws(FieldValueError) in try object.value(M.self)[keyPath: keyPath].json() }
        comparison = { (json) throws(FieldValueError) in
            guard let value = try Value(json: json) else {
                throw FieldValueError(found: json.excerpt, expected: "a value of \(Value.self)")
            }
            return { compare($0.value(M.self)[keyPath: keyPath], value) }
        }
    }
}
