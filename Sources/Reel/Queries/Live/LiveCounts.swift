/// The counts of a running query by group. The filters run under the lock of the counts only.
final class LiveCounts<M: Model, Group: Hashable & Sendable>: @unchecked Sendable {
    private let model: LiveModel<M>
    private let condition: QueryCondition<M>
    private let keyPath: any KeyPath<M, Group> & Sendable
    private let unseen = UnseenChanges()
    private let lock = QueryLock()
    // The lock guards the rest.
    private var groups: [ObjectIdentifier: Group] = [:]
    private var counts: [Group: Int] = [:]
    /// The error of a filter, which has ended the query.
    private var failure: (any Error)?

    /// Creates the counts. Called under the lock of the dataset.
    init(_ condition: QueryCondition<M>, _ keyPath: any KeyPath<M, Group> & Sendable, _ model: LiveModel<M>) {
        (self.model, self.condition, self.keyPath) = (model, condition, keyPath)
        model.add(unseen)
    }

    /// Returns the counts at the present moment of the stream.
    ///
    /// - Throws: The error of a filter. What `LiveDataset.read` throws.
    func present() throws -> GroupCounts<Group> {
        try lock.withLock {
            if let failure { throw failure }
            let (changes, all, isComplete) = try model.dataset.read {
                (unseen.take(), model.sorted, model.moment.isComplete)
            }
            do {
                if let changes { try apply(changes) } else { try count(all) }
            } catch {
                (failure, groups, counts) = (error, [:], [:])
                throw error
            }
            return GroupCounts(counts: counts, isComplete: isComplete)
        }
    }

    private func count(_ all: SortedChunks) throws {
        (groups, counts) = ([:], [:])
        try all.forEach { object in
            try add(object)
            return true
        }
    }

    private func apply(_ changes: [LoadedChange]) throws {
        for change in changes {
            if let old = change.old, let group = groups.removeValue(forKey: ObjectIdentifier(old)) {
                counts.count(-1, in: group)
            }
            if let new = change.new { try add(new) }
        }
    }

    private func add(_ object: LoadedObject) throws {
        let value = object.value(M.self)
        guard try condition.includes(value) else { return }
        let group = value[keyPath: keyPath]
        groups[ObjectIdentifier(object)] = group
        counts.count(1, in: group)
    }
}

extension Dictionary where Value == Int {
    /// Changes the count of a group. A group without objects is left out.
    mutating func count(_ change: Int, in group: Key) {
        let count = self[group, default: 0] + change
        self[group] = count == 0 ? nil : count
    }
}
