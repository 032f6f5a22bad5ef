/// The rows of a running query. The lock of the dataset guards it.
///
/// The first rows come from an index that the queries of the dataset share, if another query uses it already. Later the
/// query keeps its own sorted list of all objects that it includes, so that a change costs the same for any number of
/// objects.
final class LiveQuery<M: Model>: LiveView, @unchecked Sendable {
    let model: LiveModel<M>
    /// Held, because it identifies the query while it exists.
    private let identity: QueryIdentity
    private let condition: QueryCondition<M>
    private let order: ObjectOrder
    private let rowsMax: Int?
    /// The shared index over the order; nil for a query with an index over a property, and while no index is made.
    private var all: OrderIndex?
    /// The included objects, sorted by the bytes of their ids, until there is an index over the order.
    private var candidates: [LoadedObject]?
    private var index: (any KeyPathIndex)?
    /// The included objects; nil: they were not collected yet, or the query has no condition.
    private var included: SortedChunks?
    private var members: Set<ObjectIdentifier> = []
    /// The number of objects at the beginning of the order among which `rows` are all that are included.
    private var walked = 0

    private(set) var rows: [LoadedObject] = []
    /// The number of times that `rows` has changed.
    private(set) var version = 0
    /// The error of a filter, which has ended the query.
    private(set) var failure: (any Error)?

    init(_ query: QueryDefinition<M>, _ model: LiveModel<M>) {
        (self.model, identity, condition) = (model, query.identity, query.condition)
        (order, rowsMax) = (query.order, query.rowsMax)
        if let equality = condition.equalities.first {
            index = model.index(for: equality)
        } else {
            all = model.runningIndex(over: order)
        }
        rebuild()
    }

    func rebuild() {
        (included, members, walked, candidates) = (nil, [], 0, nil)
        attempt {
            if let equality = condition.equalities.first, let index {
                collect(order.sorted(try equality.find(index).filter { try condition.includes($0.value(M.self)) }))
            } else if let all {
                rows = []
                if !condition.isEmpty { try walk(all.objects) { _ in rows.count != rowsMax } }
            } else {
                // The first rows are there sooner than an index.
                let objects = model.sorted.first(model.count)
                let included = try objects.filter { try condition.includes($0.value(M.self)) }
                (candidates, rows) = (included, order.first(rowsMax, of: included))
            }
        }
        look()
    }

    /// Collects the included objects, if only the first ones are known in order.
    func prepare() {
        if failure != nil { return }
        if let candidates {
            let all = model.index(over: order)
            (self.all, self.candidates) = (all, nil)
            if condition.isEmpty { return }
            let included = Set(candidates.lazy.map { ObjectIdentifier($0) })
            return collect(all.objects.first(model.count).filter { included.contains(ObjectIdentifier($0)) })
        }
        guard included == nil, let all, !condition.isEmpty else { return }
        attempt {
            try walk(all.objects) { _ in true }
            collect(rows)
        }
        if let rowsMax, rows.count > rowsMax { rows.removeSubrange(rowsMax...) }
    }

    /// Appends included objects to the rows, in order, from where the last walk has stopped until `continues` returns
    /// false.
    private func walk(_ objects: SortedChunks, _ continues: (LoadedObject) -> Bool) throws {
        var place = 0
        try objects.forEach { object in
            defer { place += 1 }
            if place < walked { return true }
            guard continues(object) else { return false }
            if try condition.includes(object.value(M.self)) { rows.append(object) }
            walked += 1
            return true
        }
    }

    func apply(_ changes: [LoadedChange]) {
        if failure != nil { return }
        var isChanged = false
        attempt {
            for change in changes {
                let old = condition.isEmpty ? change.old : take(change.old)
                let new = try change.new.flatMap { try condition.includes($0.value(M.self)) ? $0 : nil }
                if let new, included != nil {
                    included?.insert(new)
                    members.insert(ObjectIdentifier(new))
                }
                isChanged = isChanged || old.map(concernsRows) ?? false || new.map(concernsRows) ?? false
            }
        }
        if isChanged || failure != nil { look() }
    }

    /// Removes an object from the included ones, and returns it; nil if it is not one of them.
    private func take(_ object: LoadedObject?) -> LoadedObject? {
        guard let object, members.remove(ObjectIdentifier(object)) != nil else { return nil }
        included?.remove(object)
        return object
    }

    private func concernsRows(_ object: LoadedObject) -> Bool {
        guard let rowsMax, rows.count == rowsMax else { return true }
        return rows.last.map { !order.precedes($0, object) } ?? false
    }

    private func collect(_ objects: [LoadedObject]) {
        included = SortedChunks(sorted: objects, by: order)
        members = Set(objects.lazy.map { ObjectIdentifier($0) })
    }

    /// Takes the rows from the included objects.
    private func look() {
        if let objects = included ?? (condition.isEmpty ? all?.objects : nil) {
            rows = objects.first(rowsMax ?? objects.count)
        }
        version += 1
    }

    /// Ends the query if `body` throws the error of a filter.
    private func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            (failure, included, candidates, members, rows) = (error, nil, nil, [], [])
            version += 1
        }
    }
}
