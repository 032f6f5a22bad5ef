/// The rows of a running query.
///
/// The first rows come from an index that the queries of the dataset share, if another query uses it already. Later the
/// query keeps its own sorted list of all objects that it includes, so that a change costs the same for any number of
/// objects.
///
/// The filters run under the lock of the query only. The lock of the dataset is held for as long as the query takes the
/// changes of a moment, or the objects of the first scan. Both are values that later changes do not change.
final class LiveQuery<M: Model>: @unchecked Sendable {
    /// The rows at one moment.
    struct Present: Sendable {
        let rows: [LoadedObject]
        /// The number of times that the rows have changed.
        let version: Int
        /// The number of times that the problems of the model have changed.
        let problemsVersion: Int
        let moment: QueryMoment
    }

    /// The news of one moment, which are taken under the lock of the dataset.
    private struct News {
        /// The changes since the moment before; nil: any object may have changed.
        let changes: [LoadedChange]?
        /// The objects of the moment, for a first scan, and for a query without a condition.
        let scan: QueryScan?
        let problemsVersion: Int
        let moment: QueryMoment
    }

    /// The result of a scan, until all included objects are needed in order.
    private enum Found {
        /// All objects in order. Those before the offset were examined, and the rows are the included ones among them.
        case walked(SortedChunks, to: Int)
        /// The included objects, sorted by the bytes of their ids.
        case byID([LoadedObject])
    }

    private let model: LiveModel<M>
    /// Its identity identifies this object while it exists.
    private let query: QueryDefinition<M>
    private let unseen = UnseenChanges()
    /// The shared index over a property, which is held; nil: no condition has one.
    private let index: (any KeyPathIndex)?
    private let lock = QueryLock()
    // The lock guards the rest.
    /// The shared index over the order, which is held; nil: none is needed yet.
    private var orderIndex: OrderIndex?
    private var found: Found?
    /// The included objects in order; nil: they are not needed yet, or the query has no condition.
    private var included: SortedChunks?
    private var members: Set<ObjectIdentifier> = []
    private var rows: [LoadedObject] = []
    private var version = 0
    /// The error of a filter, which has ended the query.
    private var failure: (any Error)?

    /// Creates the query. Called under the lock of the dataset.
    init(_ query: QueryDefinition<M>, _ model: LiveModel<M>) {
        (self.model, self.query) = (model, query)
        index = query.condition.equalities.first.map { model.index(for: $0) }
        orderIndex = index == nil ? model.runningIndex(over: query.order) : nil
        model.add(unseen)
    }

    private var condition: QueryCondition<M> { query.condition }

    // MARK: Reading

    /// Returns the rows at the present moment of the stream.
    ///
    /// - Throws: The error of a filter. What `LiveDataset.read` throws.
    func present() throws -> Present {
        try lock.withLock {
            if let failure { throw failure }
            let news = try model.dataset.read { self.news() }
            try attempt { try follow(news) }
            return Present(rows: rows, version: version, problemsVersion: news.problemsVersion, moment: news.moment)
        }
    }

    /// Does the work that comes before the first change, so that this change costs no more than the others.
    ///
    /// - Throws: The error of a filter.
    func prepare() throws {
        try lock.withLock {
            // A query that has its objects in order already does not need the index.
            let needsOrder = index == nil && orderIndex == nil && included == nil
            let objects = needsOrder ? try model.dataset.locked { shareOrder() } : nil
            try attempt { try collect(from: objects) }
        }
    }

    /// Holds the shared index over the order. Returns its objects if they are of the moment of the rows.
    private func shareOrder() -> SortedChunks? {
        let orderIndex = model.index(over: query.order)
        self.orderIndex = orderIndex
        return unseen.isEmpty ? orderIndex.objects : nil
    }

    private func news() -> News {
        let changes = unseen.take()
        var scan: QueryScan?
        if changes == nil {
            scan = model.scan(query)
        } else if changes?.isEmpty == false, condition.isEmpty {
            let orderIndex = self.orderIndex ?? model.index(over: query.order)
            self.orderIndex = orderIndex
            scan = QueryScan(objects: orderIndex.objects, isInOrder: true)
        }
        return News(changes: changes, scan: scan, problemsVersion: model.problemsVersion, moment: model.moment)
    }

    // MARK: Following

    private func follow(_ news: News) throws {
        if let changes = news.changes {
            if !changes.isEmpty { try apply(changes, news.scan) }
        } else if let scan = news.scan {
            try start(scan)
        }
    }

    private func start(_ scan: QueryScan) throws {
        let before = rows
        (found, included, members, rows) = (nil, nil, [], [])
        defer { if rows.count != before.count || zip(rows, before).contains(where: { $0 !== $1 }) { version += 1 } }
        if condition.isEmpty {
            let objects = scan.objects
            rows = scan.isInOrder ? first(of: objects) : query.order.first(query.rowsMax, of: objects.first(.max))
        } else if scan.isInOrder {
            found = .walked(scan.objects, to: 0)
            try walk(until: query.rowsMax)
        } else {
            var objects: [LoadedObject] = []
            try scan.objects.forEach { object in
                if try condition.includes(object.value(M.self)) { objects.append(object) }
                return true
            }
            (found, rows) = (.byID(objects), query.order.first(query.rowsMax, of: objects))
        }
    }

    /// Appends included objects to the rows, in order, from where the last walk has stopped.
    ///
    /// - Parameter rowsMax: the number of rows at which the walk stops; nil: the end of the objects.
    private func walk(until rowsMax: Int?) throws {
        guard case .walked(let objects, let start) = found else { return }
        var place = 0
        try objects.forEach { object in
            if place >= start {
                if rows.count == rowsMax { return false }
                if try condition.includes(object.value(M.self)) { rows.append(object) }
            }
            place += 1
            return true
        }
        found = .walked(objects, to: place)
    }

    /// Collects all included objects in order, if only some are known, or all in another order.
    ///
    /// - Parameter all: all objects of the moment of the rows in order, which saves a sort; nil: they are not known.
    private func collect(from all: SortedChunks? = nil) throws {
        switch found {
        case .walked:
            try walk(until: nil)
            collect(rows)
            if let rowsMax = query.rowsMax, rows.count > rowsMax { rows.removeSubrange(rowsMax...) }
        case .byID(let objects):
            guard let all else { return collect(query.order.sorted(objects)) }
            let included = Set(objects.lazy.map { ObjectIdentifier($0) })
            collect(all.first(.max).filter { included.contains(ObjectIdentifier($0)) })
        case nil: break
        }
    }

    private func collect(_ objects: [LoadedObject]) {
        found = nil
        included = SortedChunks(sorted: objects, by: query.order)
        members = Set(objects.lazy.map { ObjectIdentifier($0) })
    }

    /// Applies changes.
    ///
    /// - Parameters:
    ///   - changes: the changes since the rows.
    ///   - scan: all objects after the changes, in order; nil for a query with a condition.
    private func apply(_ changes: [LoadedChange], _ scan: QueryScan?) throws {
        try collect()
        var isChanged = false
        for change in changes {
            let old = condition.isEmpty ? change.old : take(change.old)
            let new = try change.new.flatMap { try condition.includes($0.value(M.self)) ? $0 : nil }
            if let new, included != nil {
                included?.insert(new)
                members.insert(ObjectIdentifier(new))
            }
            isChanged = isChanged || old.map(concernsRows) ?? false || new.map(concernsRows) ?? false
        }
        guard isChanged, let objects = included ?? scan?.objects else { return }
        rows = first(of: objects)
        version += 1
    }

    /// Removes an object from the included ones, and returns it; nil if it is not one of them.
    private func take(_ object: LoadedObject?) -> LoadedObject? {
        guard let object, members.remove(ObjectIdentifier(object)) != nil else { return nil }
        included?.remove(object)
        return object
    }

    private func concernsRows(_ object: LoadedObject) -> Bool {
        guard let rowsMax = query.rowsMax, rows.count == rowsMax else { return true }
        return rows.last.map { !query.order.precedes($0, object) } ?? false
    }

    private func first(of objects: SortedChunks) -> [LoadedObject] { objects.first(query.rowsMax ?? objects.count) }

    /// Ends the query if `body` throws the error of a filter.
    private func attempt(_ body: () throws -> Void) throws {
        if let failure { throw failure }
        do {
            try body()
        } catch {
            (failure, found, included, members, rows) = (error, nil, nil, [], [])
            throw error
        }
    }
}
