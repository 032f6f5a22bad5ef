internal import Synchronization

/// A lock of running queries, under which code of the app may run, such as a filter.
///
/// The order of the locks is: a query's, then its dataset's. What code of the app reads of a dataset under such a lock
/// does not use running queries, so that it waits for no lock.
final class QueryLock: Sendable {
    /// True in code of the app that is called while such a lock is held.
    @TaskLocal static var isHeld = false

    private let mutex = Mutex(())

    func withLock<T: Sendable>(_ body: () throws -> T) throws -> T {
        try mutex.withLock { _ in try Self.$isHeld.withValue(true, operation: body) }
    }
}
