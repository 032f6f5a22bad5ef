/// The changes of a model that one running query has not applied yet. The lock of the dataset guards it.
///
/// So the filters of a query run when the query is read, outside the lock of the dataset, and a slow filter delays no
/// other query.
final class UnseenChanges: @unchecked Sendable {
    /// The changes in order; nil: any object may have changed.
    private var changes: [LoadedChange]?

    /// True if the query has applied all changes.
    var isEmpty: Bool { changes?.isEmpty == true }

    /// Adds changes.
    ///
    /// - Parameters:
    ///   - new: the changes.
    ///   - max: the number of changes above which any object may have changed.
    func add(_ new: [LoadedChange], max: Int) {
        guard let count = changes?.count else { return }
        if count + new.count > max { changes = nil } else { changes? += new }
    }

    /// Notes that any object may have changed.
    func reset() { changes = nil }

    /// Returns the changes in order, and forgets them; nil: any object may have changed.
    func take() -> [LoadedChange]? {
        defer { changes = [] }
        return changes
    }
}
