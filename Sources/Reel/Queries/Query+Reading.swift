internal import ReelClient

// Reads of the present result. They use what running queries of the dataset have decoded. Without a running query of
// the model, they read and decode all objects of the model.
extension Query {
    /// Returns the present rows.
    ///
    /// - Throws: The error of a filter. `SchemaError` for a model that the dataset was not opened with. `closed` if the
    ///   stream or the client is closed. A code that begins with `store_` if the store failed.
    public func rows() throws -> QueryRows<M> {
        let running = try dataset.live.present?.readIfRunning(M.self) { $0.runningQuery(definition.identity) }
        // Outside of the lock of the dataset, because filters run here.
        if let present = try running??.present() { return QueryRows(present.rows, present.moment) }
        return try rows(first: definition.rowsMax, after: nil)
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
        let found = try rows(first: countMax, after: cursor)
        guard let rowsMax = definition.rowsMax, found.count > rowsMax else { return QueryPage(rows: found, next: nil) }
        let objects = Array(found.objects.prefix(rowsMax))
        return QueryPage(
            rows: QueryRows(objects, found.moment),
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

    /// Returns the first rows, without regard to the limit.
    ///
    /// - Parameters:
    ///   - countMax: the maximum number of rows; nil: all.
    ///   - cursor: the place after which the rows begin; nil: the beginning.
    private func rows(first countMax: Int?, after cursor: QueryCursor?) throws -> QueryRows<M> {
        let running = try dataset.live.present?.readIfRunning(M.self) { ($0.scan(definition), $0.moment) }
        guard let (scan, moment) = running else {
            return try dataset.read { try $0.rows(of: self, first: countMax, after: cursor) }
        }
        let (condition, order) = (definition.condition, definition.order)
        let isBeyond = try cursor?.isBeyond(order)
        var found: [LoadedObject] = []
        // Objects in order can be skipped without a look at each.
        try scan.objects.forEach(after: scan.isInOrder ? isBeyond : nil) { object in
            if scan.isInOrder, found.count == countMax { return false }
            if !scan.isInOrder, isBeyond?(object) == true { return true }
            if try condition.includes(object.value(M.self)) { found.append(object) }
            return true
        }
        return QueryRows(scan.isInOrder ? found : order.first(countMax, of: found), moment)
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
