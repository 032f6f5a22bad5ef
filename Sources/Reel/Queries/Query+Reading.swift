internal import ReelClient

// Reads of the present result. They use what running queries of the dataset have decoded. Without a running query of
// the model, they read and decode all objects of the model.
extension Query {
    /// Returns the present rows.
    ///
    /// - Throws: The error of a filter. `SchemaError` for a model that the dataset was not opened with. `closed` if the
    ///   stream or the client is closed. A code that begins with `store_` if the store failed.
    public func rows() throws -> QueryRows<M> {
        let running = try dataset.live.present?.readIfRunning(M.self) { model in
            guard let query = model.runningQuery(definition.identity) else {
                return QueryRows(try first(definition.rowsMax, after: nil, of: model), model)
            }
            if let failure = query.failure { throw failure }
            return QueryRows(query.rows, model)
        }
        return try running ?? dataset.read { try $0.rows(of: self) }
    }

    /// Returns the part of the present rows that follows a cursor, at most as many as the limit.
    ///
    ///     var page = try open.limit(50).page()
    ///     while let next = page.next { page = try open.limit(50).page(after: next) }
    ///
    /// - Parameter cursor: the place after which the part begins; nil: the beginning.
    /// - Throws: What `rows` throws. `FieldValueError` for a cursor of a query with other sort keys, and for a sort key
    ///   that has no JSON form.
    public func page(after cursor: QueryCursor? = nil) throws -> QueryPage<M> {
        // One row more shows if there is a next page.
        let countMax = definition.rowsMax.map { $0 < .max ? $0 + 1 : $0 }
        let running = try dataset.live.present?.readIfRunning(M.self) { model in
            QueryRows(try first(countMax, after: cursor, of: model), model)
        }
        let found = try running ?? dataset.read { try $0.rows(of: self, first: countMax, after: cursor) }
        guard let rowsMax = definition.rowsMax, found.count > rowsMax else { return QueryPage(rows: found, next: nil) }
        let objects = Array(found.objects.prefix(rowsMax))
        return QueryPage(
            rows: QueryRows(objects, problems: found.problems, isComplete: found.isComplete, seq: found.seq),
            next: try objects.last.map { try QueryCursor($0, definition.order) }
        )
    }

    /// Returns the number of objects, without regard to the limit.
    ///
    /// - Throws: What `rows` throws.
    public func count() throws -> Int { try all().rows().count }

    /// Returns the numbers of objects by a property, without regard to the limit.
    ///
    /// - Parameter keyPath: the property.
    /// - Throws: What `rows` throws.
    public func count<Group: Hashable & Sendable>(
        groupedBy keyPath: any KeyPath<M, Group> & Sendable
    ) throws -> GroupCounts<Group> {
        let rows = try all().rows()
        var counts: [Group: Int] = [:]
        for object in rows.objects { counts.count(1, in: object.value(M.self)[keyPath: keyPath]) }
        return GroupCounts(counts: counts, isComplete: rows.isComplete)
    }

    /// Returns the first included objects.
    ///
    /// - Parameters:
    ///   - countMax: the maximum number of objects; nil: all.
    ///   - cursor: the place after which the objects begin; nil: the beginning.
    ///   - model: the decoded objects.
    private func first(_ countMax: Int?, after cursor: QueryCursor?, of model: LiveModel<M>) throws -> [LoadedObject] {
        let (condition, order) = (definition.condition, definition.order)
        let isBeyond = try cursor?.isBeyond(order)
        var found: [LoadedObject] = []
        if let equality = condition.equalities.first, let index = model.runningIndex(for: equality) {
            found = try equality.find(index).filter {
                try isBeyond?($0) != true && condition.includes($0.value(M.self))
            }
        } else if let index = model.runningIndex(over: order) {
            try index.objects.forEach(after: isBeyond) { object in
                if found.count == countMax { return false }
                if try condition.includes(object.value(M.self)) { found.append(object) }
                return true
            }
            return found
        } else {
            try model.sorted.forEach { object in
                if isBeyond?(object) != true, try condition.includes(object.value(M.self)) { found.append(object) }
                return true
            }
        }
        return order.first(countMax, of: found)
    }
}

// Results that follow the changes.
extension Query {
    /// The rows: the present ones at once, and then the newest ones after each change of them.
    ///
    /// One changed object costs a few microseconds for any number of objects, if the query has a limit. Without a limit
    /// all rows are copied.
    public var values: QuerySequence<QueryRows<M>> {
        QuerySequence { [source = QuerySource(self)] in try RowsReader(source) }
    }

    /// Returns the numbers of objects by a property, without regard to the limit: the present ones at once, and then
    /// the newest ones after each change of them.
    ///
    /// - Parameter keyPath: the property.
    public func counts<Group: Hashable & Sendable>(
        groupedBy keyPath: any KeyPath<M, Group> & Sendable
    ) -> QuerySequence<GroupCounts<Group>> {
        QuerySequence { [source = QuerySource(self)] in try CountsReader(source, keyPath) }
    }
}
