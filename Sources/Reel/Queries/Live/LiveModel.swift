internal import ReelClient

/// The decoded objects of one model, and the indexes over them. The lock of the dataset guards it.
final class LiveModel<M: Model>: LiveObjects, @unchecked Sendable {
    private struct UnseenReference {
        weak var changes: UnseenChanges?
    }

    private struct QueryReference {
        weak var query: LiveQuery<M>?
    }

    private struct OrderReference {
        weak var index: OrderIndex?
    }

    private struct IndexReference {
        weak var index: (any KeyPathIndex)?
    }

    /// A reset that changes more than one object in this number is applied as a whole.
    private static var rebuildRatio: Int { 16 }

    /// The number of changes that are kept at least for a query that does not read. If there are many objects, it is
    /// one in `rebuildRatio` of them. A query that has missed more reads all objects again.
    private static var unseenMax: Int { 1_024 }

    let dataset: LiveDataset
    private let schema: Schema<M>
    private(set) var isLoaded = false
    private var objects: [ObjectKey: LoadedObject] = [:]
    /// The number of these objects that have own events which are not confirmed yet.
    private var pendingCount = 0
    private(set) var sorted = SortedChunks(sorted: [], by: ObjectOrder())
    private var problemsByID: [ObjectKey: ModelProblem] = [:]
    /// False if `problems` lacks a change of `problemsByID`.
    private var areProblemsListed = true
    /// The objects that the model cannot read, sorted by the bytes of their ids.
    private(set) var problems: [ModelProblem] = []
    /// The number of times that `problems` has changed.
    private(set) var problemsVersion = 0
    private var unseen: [UnseenReference] = []
    private var queries: [ObjectIdentifier: QueryReference] = [:]
    private var orders: [[SortSignature]: OrderReference] = [:]
    private var indexes: [AnyKeyPath: IndexReference] = [:]

    init(_ dataset: LiveDataset, _ schema: Schema<M>) { (self.dataset, self.schema) = (dataset, schema) }

    /// The moment of the objects.
    var moment: QueryMoment {
        QueryMoment(
            problems: problems,
            isComplete: dataset.isComplete,
            seq: dataset.seq,
            hasPending: pendingCount > 0
        )
    }

    // MARK: What queries use

    /// Adds the place where one query finds the changes from now on. It is held weakly.
    func add(_ changes: UnseenChanges) { unseen.append(UnseenReference(changes: changes)) }

    /// Returns the running query with an identity; nil if there is none.
    func runningQuery(_ identity: QueryIdentity) -> LiveQuery<M>? {
        queries[ObjectIdentifier(identity)]?.query
    }

    /// Returns the running query, which is started if there is none.
    func query(_ query: QueryDefinition<M>) -> LiveQuery<M> {
        if let running = runningQuery(query.identity) { return running }
        let running = LiveQuery(query, self)
        queries = queries.filter { $0.value.query != nil }
        queries[ObjectIdentifier(query.identity)] = QueryReference(query: running)
        return running
    }

    /// Returns the index over an order; nil if no query uses it.
    func runningIndex(over order: ObjectOrder) -> OrderIndex? { orders[order.signature]?.index }

    /// Returns the index over an order, which is made if there is none.
    func index(over order: ObjectOrder) -> OrderIndex {
        if let running = runningIndex(over: order) { return running }
        let index = OrderIndex(order, sorted)
        orders = orders.filter { $0.value.index != nil }
        orders[order.signature] = OrderReference(index: index)
        return index
    }

    /// Returns the index over a property; nil if no query uses it.
    func runningIndex(for equality: Equality<M>) -> (any KeyPathIndex)? { indexes[equality.keyPath]?.index }

    /// Returns the index over a property, which is made if there is none.
    func index(for equality: Equality<M>) -> any KeyPathIndex {
        if let running = runningIndex(for: equality) { return running }
        let index = equality.makeIndex()
        for object in objects.values { index.insert(object) }
        indexes = indexes.filter { $0.value.index != nil }
        indexes[equality.keyPath] = IndexReference(index: index)
        return index
    }

    // MARK: Changes

    func update(_ snapshot: StreamSnapshot, changed names: [ObjectName]?) throws {
        defer { listProblems() }
        guard isLoaded, let names else { return try reload(snapshot) }
        var found: [(ObjectKey, SyncObject?)] = []
        for name in names where name.model.utf8.elementsEqual(schema.name.utf8) {
            found.append((ObjectKey(name.id), try snapshot.object(name)))
        }
        apply(found.compactMap { id, object in change(of: id, to: object) })
    }

    private func reload(_ snapshot: StreamSnapshot) throws {
        let found = try snapshot.objects(schema.name)
        var (gone, unseenProblems) = (objects, problemsByID)
        var changes: [LoadedChange] = []
        for object in found {
            let id = ObjectKey(object.name.id)
            (gone[id], unseenProblems[id]) = (nil, nil)
            if let change = change(of: id, to: object) { changes.append(change) }
        }
        for id in unseenProblems.keys { setProblem(nil, of: id) }
        changes += gone.values.map { LoadedChange(old: $0, new: nil) }
        guard changes.count > (isLoaded ? objects.count / Self.rebuildRatio : 0) else {
            isLoaded = true
            return apply(changes)
        }
        for change in changes { replace(change) }
        // The objects were read in the order of their ids.
        let all = found.compactMap { objects[ObjectKey($0.name.id)] }
        sorted = SortedChunks(sorted: all, by: ObjectOrder())
        isLoaded = true
        for reference in orders.values { reference.index?.rebuild(from: all) }
        for index in indexes.values.compactMap({ $0.index }) {
            index.removeAll()
            for object in all { index.insert(object) }
        }
        for reference in unseen { reference.changes?.reset() }
    }

    /// Decodes an object, and returns its change; nil if it looks as before.
    private func change(of id: ObjectKey, to object: SyncObject?) -> LoadedChange? {
        let old = objects[id]
        do throws(ModelProblem) {
            let value = try object.map(schema.value)
            setProblem(nil, of: id)
            guard let object, let value else { return old.map { LoadedChange(old: $0, new: nil) } }
            if let old, old.isPending == object.isPending, schema.isEqual(old.value(M.self), value) { return nil }
            return LoadedChange(old: old, new: TypedObject(value, isPending: object.isPending))
        } catch {
            setProblem(error, of: id)
            return old.map { LoadedChange(old: $0, new: nil) }
        }
    }

    private func apply(_ changes: [LoadedChange]) {
        if changes.isEmpty { return }
        let (orders, indexes) = (orders.values.compactMap { $0.index }, indexes.values.compactMap { $0.index })
        for change in changes {
            replace(change)
            if let old = change.old {
                sorted.remove(old)
                for order in orders { order.objects.remove(old) }
                for index in indexes { index.remove(old) }
            }
            if let new = change.new {
                sorted.insert(new)
                for order in orders { order.objects.insert(new) }
                for index in indexes { index.insert(new) }
            }
        }
        unseen.removeAll { $0.changes == nil }
        let changesMax = max(Self.unseenMax, objects.count / Self.rebuildRatio)
        for reference in unseen { reference.changes?.add(changes, max: changesMax) }
    }

    private func replace(_ change: LoadedChange) {
        if let new = change.new { objects[new.key] = new } else if let old = change.old { objects[old.key] = nil }
        if change.new?.isPending == true { pendingCount += 1 }
        if change.old?.isPending == true { pendingCount -= 1 }
    }

    private func setProblem(_ problem: ModelProblem?, of id: ObjectKey) {
        guard problemsByID[id] != problem else { return }
        problemsByID[id] = problem
        areProblemsListed = false
    }

    private func listProblems() {
        if areProblemsListed { return }
        areProblemsListed = true
        problems = problemsByID.sorted { $0.key < $1.key }.map { $0.value }
        problemsVersion += 1
    }
}

/// All objects of a model in one order.
final class OrderIndex {
    private let order: ObjectOrder
    var objects: SortedChunks

    init(_ order: ObjectOrder, _ sorted: SortedChunks) {
        self.order = order
        objects = SortedChunks(sorted: order.sorted(sorted.first(sorted.count)), by: order)
    }

    /// Takes all objects, which are sorted by the bytes of their ids.
    func rebuild(from all: [LoadedObject]) { objects = SortedChunks(sorted: order.sorted(all), by: order) }
}
