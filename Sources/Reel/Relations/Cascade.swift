internal import ReelClient
internal import ReelCore

/// The progress of one cascading delete, which makes its events one after the other.
///
/// If one event can hold all objects, there is one event. Otherwise the objects are deleted in the order of a plan, in
/// which an object comes before those that it refers to. The last event is made from a new search, because objects can
/// have been attached in the meantime.
struct Cascade: Sendable {
    private let root: ObjectName
    private let references: [ReferenceField]
    /// The objects that are still to be deleted; the root is the last.
    private var plan: ArraySlice<ObjectName> = []
    private var deleted: Set<ObjectName> = []

    /// The objects of the last search that refer to a deleted one, and that their model cannot read.
    private(set) var problems: [ModelProblem] = []
    /// True once the event that deletes the root was made.
    private(set) var isFinished = false

    init(_ root: ObjectName, _ references: [ReferenceField]) {
        (self.root, self.references) = (root, references)
    }

    /// Returns the next event, made from the present objects; nil if it would delete nothing.
    mutating func next(_ present: PresentObjects) throws -> SyncEvent? {
        try checkRoot(present)
        let part: [ObjectName]
        if plan.count > Limits.parts {
            part = try referring(Array(plan.prefix(Limits.parts)), present)
        } else {
            plan = try search(present)[...]
            part = Array(plan.prefix(Limits.parts))
            isFinished = part.count == plan.count
        }
        plan = plan.dropFirst(Limits.parts)
        deleted.formUnion(part)
        let changes = part.map { SyncChange.delete($0.model, id: $0.id) }
        return changes.count > 1 ? .batch(changes) : changes.first.map { SyncEvent($0) }
    }

    /// Throws `no_object` if the root neither exists nor was deleted.
    func checkRoot(_ present: some RelatedObjects) throws {
        guard try present.related(root) != nil || present.isDeleted(root) else {
            throw ReelError(.noObject, "found a delete of \(root), which this device does not have, or not yet")
        }
    }

    /// Returns all objects that refer to the root or to a deleted object, also through others, and then the root.
    mutating func search(_ present: some RelatedObjects) throws -> [ObjectName] {
        var referrers: [ObjectName: [ObjectName]] = [:]
        var searched: Set<String> = []
        for model in references.map(\.model) where searched.insert(model).inserted {
            let references = references.filter { $0.model == model }
            for object in try present.related(ofModel: model) {
                for target in references.compactMap({ $0.target(object) }) {
                    referrers[deleted.contains(target) ? root : target, default: []].append(object.name)
                }
            }
        }
        var problems: [ModelProblem] = []
        let order = try Self.order(from: root) { name in
            if name != root {
                guard let object = try present.related(name) else { return nil }
                if let problem = problem(of: object) {
                    problems.append(problem)
                    return nil
                }
            }
            return referrers[name] ?? []
        }
        self.problems = problems
        return order
    }

    /// Returns the objects that still refer to the root or to a deleted object, also through others.
    private func referring(_ names: [ObjectName], _ present: PresentObjects) throws -> [ObjectName] {
        var found: Set<ObjectName> = []
        // The later objects are those that the earlier ones refer to.
        for start in names.reversed() {
            var (open, seen) = ([start], Set([start]))
            search: while let name = open.popLast() {
                guard let object = try present.related(name), problem(of: object) == nil else { continue }
                for target in targets(of: object) {
                    if target == root || deleted.contains(target) || found.contains(target) {
                        found.insert(start)
                        break search
                    }
                    if seen.insert(target).inserted { open.append(target) }
                }
            }
        }
        return names.filter(found.contains)
    }

    private func targets(of object: RelatedObject) -> [ObjectName] {
        references.compactMap { $0.model == object.name.model ? $0.target(object) : nil }
    }

    private func problem(of object: RelatedObject) -> ModelProblem? {
        references.first { $0.model == object.name.model }?.problem(object)
    }

    /// Returns the objects that are reached from a root, in an order in which an object comes before those that it
    /// refers to. The root is the last. Objects of a cycle are in any order.
    ///
    /// - Parameters:
    ///   - root: the object that all others are reached from.
    ///   - referrers: returns the objects that refer to an object. Nil leaves the object out.
    static func order(
        from root: ObjectName,
        _ referrers: (ObjectName) throws -> [ObjectName]?
    ) rethrows -> [ObjectName] {
        var (order, seen) = ([ObjectName](), Set([root]))
        // A list instead of recursion, because a chain of references can be longer than the stack.
        var open = [(name: root, referrers: (try referrers(root) ?? [])[...])]
        while let last = open.indices.last {
            if let name = open[last].referrers.popFirst() {
                if seen.insert(name).inserted, let others = try referrers(name) { open.append((name, others[...])) }
            } else {
                order.append(open.removeLast().name)
            }
        }
        return order
    }
}
