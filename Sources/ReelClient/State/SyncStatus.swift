public import ReelCore

/// The status of a client: its node, its deployment, its queue, and the present problems.
public struct SyncStatus: Sendable, Hashable, Codable {
    /// The node that the client is connected with; nil: none.
    public internal(set) var connectedNode: String?
    /// The time since which the client has had no node, in milliseconds since 1970. Nil while it is connected, and
    /// before it has looked for one.
    public internal(set) var offlineSinceMs: Int64?
    /// The deployment that the device belongs to, 16 hex digits; nil: it has met none.
    public internal(set) var deployment: String?
    /// Another deployment, which a node has named. The device sends nothing there; see `SyncClient.adopt(deployment:)`.
    public internal(set) var otherDeployment: String?
    /// The number of own events that wait in open streams. Merged events count as one.
    public internal(set) var pendingCount = 0
    /// True if at least one stream is open, and every open stream is up to date. Streams that have failed do not count.
    /// Own events may still wait; see `pendingCount`.
    public internal(set) var isUpToDate = false
    /// The problems, those of the whole client first, then those of streams by name. A problem leaves the list when it
    /// is repaired.
    public internal(set) var problems: [SyncProblem] = []
}

/// A reason why a part of the client does not work at the moment.
public struct SyncProblem: Sendable, Hashable, Codable {
    /// The kind of problem. docs/reference/errors.md says what to do for each code.
    public let code: ErrorCode
    /// The stream that the problem concerns; nil: the whole client.
    public let stream: String?
    /// The details for people: what was found, and what was expected.
    public let message: String
    /// The beginning of the problem, in milliseconds since 1970 by the device's wall clock.
    public let sinceMs: Int64
}

/// The statuses of a client or of a stream: the present one first, then the newest one after each change.
///
/// Each `for await` loop is independent. A loop that is slower than the changes gets the newest status and skips those
/// before it. A loop ends when the client or the stream is closed, and keeps neither alive.
public struct Statuses<Status: Sendable>: AsyncSequence, Sendable {
    /// A status.
    public typealias Element = Status

    /// An iterator over the statuses.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var statuses: AsyncStream<Status>.AsyncIterator

        /// Returns the present status at the first call, and then waits for a change. Returns nil after the client or
        /// the stream is closed, or if the task is cancelled.
        public mutating func next() async -> Status? { await statuses.next() }
    }

    let subscribe: @Sendable () -> AsyncStream<Status>

    /// Returns an independent iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(statuses: subscribe().makeAsyncIterator()) }
}
