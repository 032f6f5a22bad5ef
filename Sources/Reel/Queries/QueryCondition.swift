/// The conditions that the objects of a query meet.
struct QueryCondition<M: Model>: Sendable {
    var equalities: [Equality<M>] = []
    var filters: [@Sendable (M) throws -> Bool] = []

    /// True if every object is included.
    var isEmpty: Bool { equalities.isEmpty && filters.isEmpty }

    /// Returns true if an object is included.
    ///
    /// - Throws: The error of a filter of the app.
    func includes(_ value: M) throws -> Bool {
        for equality in equalities where !equality.holds(value) { return false }
        for filter in filters where try !filter(value) { return false }
        return true
    }
}

/// The condition that a property has a value.
struct Equality<M: Model>: Sendable {
    let keyPath: any PartialKeyPath<M> & Sendable
    let holds: @Sendable (M) -> Bool
    /// Returns a new index over the property.
    let makeIndex: @Sendable () -> any KeyPathIndex
    /// Returns the objects of an index that have the value, sorted by the bytes of their ids.
    let find: @Sendable (any KeyPathIndex) -> [LoadedObject]

    init<Value: Hashable & Sendable>(_ keyPath: any KeyPath<M, Value> & Sendable, _ value: Value) {
        self.keyPath = keyPath
        holds = { $0[keyPath: keyPath] == value }
        makeIndex = { ValueIndex(keyPath) }
        find = { ($0 as? ValueIndex<M, Value>)?.objects(with: value) ?? [] }
    }
}
