/// The objects of one moment among which a query finds all that it includes.
struct QueryScan: Sendable {
    let objects: SortedChunks
    /// True if the objects are in the order of the query. False if they are sorted by the bytes of their ids.
    let isInOrder: Bool
}

extension LiveModel {
    /// Returns the objects among which a query finds all that it includes. Called under the lock of the dataset.
    func scan(_ query: QueryDefinition<M>) -> QueryScan {
        if let equality = query.condition.equalities.first, let index = runningIndex(for: equality) {
            return QueryScan(objects: SortedChunks(sorted: equality.find(index), by: ObjectOrder()), isInOrder: false)
        }
        if let index = runningIndex(over: query.order) { return QueryScan(objects: index.objects, isInOrder: true) }
        return QueryScan(objects: sorted, isInOrder: false)
    }
}
