/// The objects of a model that meet conditions, in an order.
///
///     let open = todo.query(TodoTask.self).filter { !$0.isDone }.sort(by: \.label, \.createdAt).limit(200)
///     let rows = try open.rows()
///     for try await rows in open.values { show(rows) }
///
/// A query is a value. Reading from it, at once or again after each change, never waits for a network.
///
/// The running queries of a dataset share their decoded objects and their indexes. These end with the last of them.
public struct Query<M: Model>: Sendable {
    /// The direction of an order.
    public enum Direction: Sendable, Hashable {
        /// The smallest value comes first, and nil before all values.
        case ascending
        /// The largest value comes first, and nil after all values.
        case descending
    }

    let dataset: Dataset
    private(set) var definition = QueryDefinition<M>()

    init(_ dataset: Dataset) { self.dataset = dataset }

    /// Returns the query with another filter: objects must meet this one and all earlier conditions.
    ///
    /// - Parameter isIncluded: returns true for the objects that are included. A query that runs calls it once for each
    ///   changed object, also when an own change of the object is confirmed. After a reset, or very many changes, it
    ///   calls it for all objects again. It may be called on any thread. A slow filter delays the results of its query,
    ///   and nothing else. If it throws, the query ends with the error, for all its readers.
    public func filter(_ isIncluded: @escaping @Sendable (M) throws -> Bool) -> Query {
        changed { $0.condition.filters.append(isIncluded) }
    }

    /// Returns the query with another condition: a property must have a value. The first result comes from an index,
    /// which running queries share.
    ///
    /// - Parameters:
    ///   - keyPath: the property.
    ///   - value: the value that the property must have.
    public func `where`<Value: Hashable & Sendable>(
        _ keyPath: any KeyPath<M, Value> & Sendable,
        equals value: Value
    ) -> Query {
        changed { $0.condition.equalities.append(Equality(keyPath, value)) }
    }

    /// Returns the query with more sort keys. Those of earlier calls are more significant. Objects with equal keys are
    /// sorted by the bytes of their ids.
    ///
    /// - Parameters:
    ///   - keyPaths: the properties, the most significant one first.
    ///   - direction: the direction of these properties.
    public func sort<each Value: Comparable & FieldValue>(
        by keyPaths: repeat any KeyPath<M, each Value> & Sendable,
        order direction: Direction = .ascending
    ) -> Query {
        var keys: [SortKey] = []
        repeat keys.append(SortKey(each keyPaths, isDescending: direction == .descending) { $0 < $1 })
        return sorted(by: keys)
    }

    /// Returns the query with more sort keys, which may be nil. In ascending order nil comes first.
    ///
    /// - Parameters:
    ///   - keyPaths: the properties, the most significant one first.
    ///   - direction: the direction of these properties.
    public func sort<each Value: Comparable & FieldValue>(
        by keyPaths: repeat any KeyPath<M, (each Value)?> & Sendable,
        order direction: Direction = .ascending
    ) -> Query {
        var keys: [SortKey] = []
        repeat keys.append(
            SortKey(each keyPaths, isDescending: direction == .descending) { a, b in
                guard let b else { return false }
                return a.map { $0 < b } ?? true
            }
        )
        return sorted(by: keys)
    }

    /// Returns the query with another sort key. In ascending order false comes first.
    ///
    /// - Parameters:
    ///   - keyPath: the property.
    ///   - direction: the direction of this property.
    public func sort(
        by keyPath: any KeyPath<M, Bool> & Sendable,
        order direction: Direction = .ascending
    ) -> Query {
        sorted(by: [SortKey(keyPath, isDescending: direction == .descending) { !$0 && $1 }])
    }

    /// Returns the query with a maximum number of rows. Counts ignore it.
    public func limit(_ count: Int) -> Query { changed { $0.rowsMax = max(0, count) } }

    /// Returns the query of all objects that meet the conditions, in no particular order.
    func all() -> Query {
        changed { query in
            query.order = ObjectOrder()
            query.rowsMax = nil
        }
    }

    private func sorted(by keys: [SortKey]) -> Query { changed { $0.order.keys += keys } }

    private func changed(_ body: (inout QueryDefinition<M>) -> Void) -> Query {
        var query = self
        query.definition.identity = QueryIdentity()
        body(&query.definition)
        return query
    }
}

/// The objects and the order that a query asks for.
struct QueryDefinition<M: Model>: Sendable {
    var condition = QueryCondition<M>()
    var order = ObjectOrder()
    /// The maximum number of rows; nil: all.
    var rowsMax: Int?
    /// Identifies the query among the running ones of its dataset.
    fileprivate(set) var identity = QueryIdentity()
}

/// The identity of a query.
final class QueryIdentity: Sendable {}

extension Dataset {
    /// Returns the query of all objects of a model.
    public func query<M: Model>(_ model: M.Type) -> Query<M> { Query(self) }
}
