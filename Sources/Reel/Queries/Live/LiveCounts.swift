/// The counts of a running query by group. The lock of the dataset guards it.
final class LiveCounts<M: Model, Group: Hashable & Sendable>: LiveView, @unchecked Sendable {
    let model: LiveModel<M>
    private let condition: QueryCondition<M>
    private let keyPath: any KeyPath<M, Group> & Sendable
    private var groups: [ObjectIdentifier: Group] = [:]
    private(set) var counts: [Group: Int] = [:]
    /// The number of times that `counts` may have changed.
    private(set) var version = 0
    /// The error of a filter, which has ended the query.
    private(set) var failure: (any Error)?

    init(_ condition: QueryCondition<M>, _ keyPath: any KeyPath<M, Group> & Sendable, _ model: LiveModel<M>) {
        (self.model, self.condition, self.keyPath) = (model, condition, keyPath)
        model.add(self)
        rebuild()
    }

    func prepare() {}

    func rebuild() {
        (groups, counts) = ([:], [:])
        attempt {
            try model.sorted.forEach { object in
                try add(object)
                return true
            }
        }
    }

    func apply(_ changes: [LoadedChange]) {
        attempt {
            for change in changes {
                if let old = change.old, let group = groups.removeValue(forKey: ObjectIdentifier(old)) {
                    counts.count(-1, in: group)
                }
                if let new = change.new { try add(new) }
            }
        }
    }

    private func add(_ object: LoadedObject) throws {
        let value = object.value(M.self)
        guard try condition.includes(value) else { return }
        let group = value[keyPath: keyPath]
        groups[ObjectIdentifier(object)] = group
        counts.count(1, in: group)
    }

    /// Ends the query if `body` throws the error of a filter.
    private func attempt(_ body: () throws -> Void) {
        version += 1
        if failure != nil { return }
        do { try body() } catch { (failure, groups, counts) = (error, [:], [:]) }
    }
}

extension Dictionary where Value == Int {
    /// Changes the count of a group. A group without objects is left out.
    mutating func count(_ change: Int, in group: Key) {
        let count = self[group, default: 0] + change
        self[group] = count == 0 ? nil : count
    }
}
