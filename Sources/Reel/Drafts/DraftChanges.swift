/// The edits of others on the content of a draft, in order.
///
/// The loop gets an edit in the isolation in which it runs, and the draft performs the edit at that moment. So an own
/// edit that the same isolation makes comes either before or after it, both in the draft and in the view.
public struct DraftChanges<Change: Sendable>: AsyncSequence, Sendable {
    /// The sequence throws no error.
    public typealias Failure = Never

    /// An iterator over the edits.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// The iterator throws no error.
        public typealias Failure = Never

        fileprivate let take: @Sendable () -> Change?
        fileprivate let arrival: @Sendable () async -> Bool

        /// Returns the next edit, and waits for it. Returns nil once the draft is released, or if the task is
        /// cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Change? {
            while true {
                // Nothing comes between this call and the body of a loop in the same isolation.
                if let change = take() { return change }
                guard await arrival() else { return nil }
            }
        }
    }

    private let take: @Sendable () -> Change?
    private let arrival: @Sendable () async -> Bool

    init<View: DraftView>(_ session: DraftSession<View>) where View.Change == Change {
        take = { session.take() }
        arrival = { await session.arrival() }
    }

    /// Returns an iterator over the edits that wait and those that follow.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(take: take, arrival: arrival) }
}
