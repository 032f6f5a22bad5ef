internal import ReelCore
internal import Synchronization

/// The events that were enqueued on any thread and that the client has not taken yet, in order.
final class Inbox: Sendable {
    /// An event with its stream.
    struct Item: Sendable {
        let event: EnqueuedEvent
        let opening: StreamOpening
        let base: ReadPosition?
    }

    private struct State {
        var items: ArraySlice<Item> = []
        /// The number of events that are enqueued and not stored.
        var unstored = 0
        /// True if the client was asked to take the events.
        var isAnnounced = false
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Appends an event. Returns true if the client must be asked to take it. Throws `limit` if too many events are not
    /// stored yet, and `closed` after the end.
    func add(_ item: Item) throws(ReelError) -> Bool {
        let result: Result<Bool, ReelError> = state.withLock { state in
            if state.isClosed { return .failure(.closed) }
            guard state.unstored < EnqueuedEvent.unstoredMax else {
                let message =
                    "found \(state.unstored) enqueued events that are not stored, expected fewer: await `stored`"
                return .failure(ReelError(.limit, message))
            }
            state.items.append(item)
            state.unstored += 1
            defer { state.isAnnounced = true }
            return .success(!state.isAnnounced)
        }
        return try result.get()
    }

    /// Removes and returns the first events. The client must be asked again if more are left, or if others come.
    func take(_ count: Int) -> (items: ArraySlice<Item>, hasMore: Bool) {
        state.withLock { state in
            let taken = state.items.prefix(count)
            state.items = state.items.dropFirst(taken.count)
            if state.items.isEmpty { state.items = [] }
            state.isAnnounced = !state.items.isEmpty
            return (taken, state.isAnnounced)
        }
    }

    /// Called when taken events are stored or can no longer be stored.
    func finished(_ count: Int) {
        state.withLock { $0.unstored -= count }
    }

    /// Refuses all further events, and finishes those that were not taken.
    func close(_ error: ReelError) {
        let items = state.withLock { state in
            state.isClosed = true
            defer { state.items = [] }
            return state.items
        }
        for item in items { item.event.finish(.failure(error)) }
    }
}
