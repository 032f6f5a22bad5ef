public import ReelCore

/// The state of a client: its node, its deployment, and the present problems.
public struct SyncState: Sendable, Equatable {
    /// The node that the client is connected with; nil: none.
    public var connectedNode: String?
    /// The deployment that the device belongs to, 16 hex digits; nil: it has met none.
    public var deployment: String?
    /// Another deployment, which a node has named. The device sends nothing there; see `SyncClient.adopt(deployment:)`.
    public var otherDeployment: String?
    /// The problems, those of the whole client first, then those of streams by name. A problem leaves the list when it
    /// is repaired.
    public var problems: [SyncProblem] = []
}

/// A reason why a part of the client does not work at the moment.
public struct SyncProblem: Sendable, Equatable {
    /// The kind of problem. docs/reference/errors.md says what to do for each code.
    public let code: ErrorCode
    /// The stream that the problem concerns; nil: the whole client.
    public let stream: String?
    /// The details for people: what was found, and what was expected.
    public let message: String
    /// The age of the problem in milliseconds, by the transport's clock, when this value was made.
    public let ageMs: Int64
}

/// The states of a client: the present one first, then the newest one after each change.
///
/// Each `for await` loop is independent. A loop that is slower than the changes gets the newest state and skips those
/// before it. A loop ends when the client is closed, and does not keep the client alive.
public struct SyncStates: AsyncSequence, Sendable {
    /// A state.
    public typealias Element = SyncState

    /// An iterator over the states.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let subscribe: @Sendable () async -> AsyncStream<SyncState>?
        var states: AsyncStream<SyncState>.AsyncIterator?

        /// Returns the present state at the first call, and then waits for a change. Returns nil after the client is
        /// closed, or if the task is cancelled.
        public mutating func next() async -> SyncState? {
            if states == nil { states = await subscribe()?.makeAsyncIterator() }
            return await states?.next()
        }
    }

    let subscribe: @Sendable () async -> AsyncStream<SyncState>?

    /// Returns an independent iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscribe: subscribe) }
}
