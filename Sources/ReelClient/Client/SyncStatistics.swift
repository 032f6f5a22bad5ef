/// The counters of a client's work since it was made.
public struct SyncStatistics: Sendable, Hashable, Codable {
    /// Bytes of frames and bodies that were received.
    public var bytesReceived: Int64 = 0
    /// Bytes of frames that were sent.
    public var bytesSent: Int64 = 0
    /// Frames that were received.
    public var framesReceived: Int64 = 0
    /// Frames that were sent.
    public var framesSent: Int64 = 0
    /// Events that were received for the first time.
    public var eventsReceived: Int64 = 0
    /// Connections that were made after one was lost or left.
    public var reconnects: Int64 = 0
    /// Missing seqs that were requested.
    public var seqsFetched: Int64 = 0
    /// Requests for missing seqs.
    public var gapsFetched: Int64 = 0
    /// Snapshots that were read.
    public var snapshots: Int64 = 0
    /// Deltas that were read.
    public var deltas: Int64 = 0
    /// The number of times that a stream was read as deltas, because the connection was slower than its events.
    public var slowLinks: Int64 = 0
    /// Streams whose state was the same at a node, so that no delta was read.
    public var digests: Int64 = 0
    /// Bytes of snapshots and deltas.
    public var snapshotBytes: Int64 = 0
    /// Milliseconds from the last loss of a connection to the next node's `welcome`.
    public var failoverMs: Int64 = 0
}

/// A notice that an app may want to show to its user or to log.
public enum SyncNotice: Sendable, Hashable, Codable {
    /// A node sent `welcome`.
    case connected(node: String)
    /// The connection to a node has ended, or could not be made. Another attempt follows.
    case disconnected(node: String, reason: String)
    /// The node serves an older log (`number`) than this device has already seen (`expected`), so the client leaves it
    /// at once. Temporary during an epoch change.
    case nodeBehind(node: String, number: Int, expected: Int)
    /// The node belongs to another deployment than this device. The client sends nothing and leaves it at once. Correct
    /// the nodes' addresses. If the deployment was replaced on purpose, see `SyncClient.adopt(deployment:)`.
    case otherDeployment(node: String, found: String, expected: String)
    /// The device continues under a new site, which now has the events that it had not sent. Either the device was
    /// cloned (restored from a backup), or an operator has retired its site.
    case newSite(stream: String, was: String, now: String)
    /// The store's site in the stream belongs to another user, for example because the user was renamed (`adopt`), or
    /// an operator has retired it. The device never uses that site again.
    ///
    /// The three counts are of events that were sent under the site and not known to have arrived. `consumed` of them
    /// are in the stream. `moved` of them are sent under a new site. `unknown` of them may have arrived or not, and are
    /// not sent again. Events that were never sent are sent under the new site, except for splices that count on text
    /// of the former site.
    case leftSite(stream: String, site: String, consumed: Int, moved: Int, unknown: Int)
    /// `renewToken` gave a token of another user, or one whose subject cannot be read (nil). The client does not use
    /// it.
    case wrongUser(expected: String, found: String?)
    /// The own events of the stream wait for a change that no event can bring about: a right, a user, or room in a
    /// stream that is full.
    case publishingPaused(stream: String, reason: String)
    /// An own event has no effect, and is no longer shown. Either the stream has rejected it, or no gateway accepts it.
    case notApplied(stream: String, SyncEvent, PublishOutcome)
    /// The log was replaced by another one. The queue is kept, and the state is read from the new log.
    case epochChanged(stream: String)
    /// The stream's state is not available at the moment. Either the stream begins with a snapshot and no node answers
    /// with one, or nodes contradict each other and the state is read again. The client continues to ask, and to accept
    /// events.
    case snapshotUnavailable(stream: String, reason: String)
    /// The stream cannot be read further. There are these reasons:
    ///
    /// - The data of this device and the log contradict each other.
    /// - The log has a newer version than this client knows.
    /// - The node refuses the stream to the device. The client tries again with the next token and on the next
    ///   connection.
    /// - With `limit`, the node allows no more subscriptions of a connection. Such a stream is polled, and its queue is
    ///   sent.
    case streamFailed(stream: String, reason: String)
    /// `renewToken` threw, or did not return in time.
    case tokenUnavailable(reason: String)
    /// The device's store failed. The client accepts and sends nothing more.
    case storeFailed(reason: String)
    /// The device's store has lost its last commits while no client had it open. Own events may be missing although
    /// `publish` had returned for them. The first reader of the notices gets this notice.
    case storeLost(reason: String)
}

/// The notices of a client, from the call of `notices()` until the client has ended. This sequence and
/// its iterators do not hold the client.
///
/// Several loops may read the sequence at the same time, and each one gets every notice. The first loop begins where
/// `notices()` was called. A further loop begins where its iterator is made. A loop that starts after another one has
/// ended continues where that one stopped.
public struct SyncNotices: AsyncSequence, Sendable {
    /// An iterator over the notices.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: FeedSource<SyncNotice>.Lease

        /// Returns the next notice, and waits for it. Returns nil once the client has ended, or if the task is
        /// cancelled.
        public mutating func next() async -> SyncNotice? {
            await lease.feed.next()
        }
    }

    static let pendingMax = 256

    /// Appends a notice, and keeps only the last ones for a slow reader.
    @Sendable static func gather(_ pending: inout [SyncNotice], _ notice: SyncNotice) {
        if pending.count == pendingMax { pending.removeFirst() }
        pending.append(notice)
    }

    let source: FeedSource<SyncNotice>

    /// Returns an iterator over the notices. See `SyncNotices` for where it begins.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: source.lease())
    }
}
