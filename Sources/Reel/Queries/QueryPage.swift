public import ReelClient

/// A part of a query's rows, and the place of the next part.
public struct QueryPage<M: Model>: Sendable {
    /// The rows.
    public let rows: QueryRows<M>
    /// The cursor after the last row; nil if there are no more rows.
    public let next: QueryCursor?
}

/// A place in the order of a query: the sort keys of a row and its id. It stays valid when objects change or are
/// deleted. It can be stored, and used with any query that has the same sort keys.
public struct QueryCursor: Sendable, Hashable, Codable {
    /// The values of the sort keys.
    public let keys: [JSONValue]
    /// The id of the row.
    public let id: String
}

extension QueryCursor {
    /// Creates the cursor of an object.
    init(_ object: LoadedObject, _ order: ObjectOrder) throws(FieldValueError) {
        var keys: [JSONValue] = []
        for key in order.keys { keys.append(try key.json(object)) }
        (self.keys, id) = (keys, object.key.text)
    }

    /// Returns a function that returns true for an object that does not come after the cursor.
    func isBeyond(_ order: ObjectOrder) throws(FieldValueError) -> (LoadedObject) -> Bool {
        guard keys.count == order.keys.count else {
            throw FieldValueError(
                found: "a cursor with \(keys.count) sort keys",
                expected: "a cursor of a query with \(order.keys.count)"
            )
        }
        var comparisons: [(LoadedObject) -> Int] = []
        for (key, json) in zip(order.keys, keys) { comparisons.append(try key.comparison(json)) }
        let key = ObjectKey(id)
        return { object in
            for comparison in comparisons {
                let result = comparison(object)
                if result != 0 { return result < 0 }
            }
            return object.key <= key
        }
    }
}
