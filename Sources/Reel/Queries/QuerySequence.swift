internal import ReelClient

/// The results of a query, or of the closure of `Dataset.values`: the present one at once, and then the newest one
/// after each change.
///
/// A slow reader gets the newest result and misses intermediate ones. Nothing is kept for it meanwhile. Several loops
/// may read the sequence at the same time. The objects are decoded on the loops' threads, never on the main actor.
///
/// The sequence throws `closed` when the stream or the client is closed, and the error of a filter or closure that
/// throws. It ends without an error when its task is cancelled.
public struct QuerySequence<Element: Sendable>: AsyncSequence, Sendable {
    typealias Start = @Sendable () throws -> LiveReader<Element>

    /// An iterator over the results.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private enum State {
            case idle(Start)
            case running(LiveReader<Element>)
            case ended
        }

        private var state: State

        init(_ start: @escaping Start) { state = .idle(start) }

        /// Returns the newest result, and waits for it if there is none since the last call. A result of a query
        /// differs from the one before. A result of `Dataset.values` may be equal to it. Returns nil if the task is
        /// cancelled, and after an error.
        ///
        /// - Throws: `closed` if the stream or the client is closed. `SchemaError` for a model that the dataset was not
        ///   opened with. The error of a filter or closure. A code that begins with `store_` if the store failed. Once
        ///   there was a result, it waits after `store_damaged` until the client has read the stream again.
        public mutating func next() async throws -> Element? {
            do {
                if case .idle(let start) = state { state = .running(try start()) }
                guard case .running(let reader) = state else { return nil }
                while !Task.isCancelled {
                    let version = reader.observation.version
                    if let element = try reader.next() { return element }
                    await reader.observation.wait(after: version)
                }
                state = .ended
                return nil
            } catch {
                state = .ended
                throw error
            }
        }
    }

    let start: Start

    /// Returns an iterator, which begins with the present result.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(start) }
}
