/// What a client has done since it was made.
public struct SyncStatistics: Sendable, Equatable {
    /// Bytes of frames and bodies that came in.
    public var bytesReceived: Int64 = 0
    /// Bytes of frames that went out.
    public var bytesSent: Int64 = 0
    /// Frames that came in.
    public var framesReceived: Int64 = 0
    /// Frames that went out.
    public var framesSent: Int64 = 0
    /// Events that were received for the first time.
    public var eventsReceived: Int64 = 0
    /// How often a connection was made again after one was lost or left.
    public var reconnects: Int64 = 0
    /// Seqs that were missing and asked for.
    public var seqsFetched: Int64 = 0
    /// Requests for missing seqs.
    public var gapsFetched: Int64 = 0
    /// Snapshots that were read.
    public var snapshots: Int64 = 0
    /// Deltas that were read.
    public var deltas: Int64 = 0
    /// Bytes of snapshots and deltas.
    public var snapshotBytes: Int64 = 0
    /// Milliseconds from the last loss of a connection to the next node's welcome.
    public var failoverMs: Int64 = 0
}

/// What an app may want to tell its user or its log.
public enum SyncNotice: Sendable, Equatable {
    /// A node said welcome.
    case connected(node: String)
    /// The connection to a node has ended, or could not be made; another attempt follows.
    case disconnected(node: String, reason: String)
    /// A node is at a log before the one that this device has been at, `number` where `expected` is wanted: the client
    /// leaves it at once. While an epoch ends that passes by itself.
    case nodeBehind(node: String, number: Int, expected: Int)
    /// A node belongs to another deployment than this device: the client sends nothing and leaves it at once. Correct
    /// the nodes' addresses. If the deployment was replaced on purpose, see `SyncClient.adopt(deployment:)`.
    case otherDeployment(node: String, found: String, expected: String)
    /// The device was cloned (restored from a backup), or an operator has retired its site: it goes on as a new site,
    /// and has moved what it had not sent.
    case newSite(stream: String, was: String, now: String)
    /// The store's site in the stream belongs to another user, for example because the user was renamed (`adopt`), or
    /// an operator has retired it. It is never used again. Of the events that were sent under it and not known to have
    /// arrived, `consumed` are in the stream, `moved` are sent under a new site, and of `unknown` it cannot be told:
    /// these are not sent again. What was never sent goes under the new site, but for splices that count on text of the
    /// former one.
    case leftSite(stream: String, site: String, consumed: Int, moved: Int, unknown: Int)
    /// `renewToken` gave a token of another user, or one whose subject cannot be read (nil): it is not used.
    case wrongUser(expected: String, found: String?)
    /// Own events wait for something that no event can help: a right, a user, a stream that is full.
    case held(stream: String, reason: String)
    /// An own event has no effect, and is not shown any longer: the stream has rejected it, or no gateway takes it.
    case notApplied(stream: String, Event, Fate)
    /// The log was replaced by another one: the queue is kept, the state comes anew.
    case epochChanged(stream: String)
    /// The stream's state cannot be had at the moment: it begins with a snapshot, and no node answers with one. Or
    /// nodes contradict each other, so that the state is read again. The client goes on asking, and taking events.
    case waiting(stream: String, reason: String)
    /// The stream cannot be read on: what this device knows and what the log says exclude each other, the log speaks a
    /// version that this client does not know, or the node does not let the device have it, which is tried again with
    /// the next token and on the next connection. With `limit`: the node allows no more subscriptions of a connection.
    /// Such a stream is polled, and its queue goes out.
    case stopped(stream: String, reason: String)
    /// `renewToken` threw, or did not answer in time.
    case noToken(reason: String)
    /// The device's store failed: nothing is taken or sent any more.
    case storeFailed(reason: String)
    /// The device's store has lost its last commits while no client had it: own events may be missing for which
    /// `publish` had returned. The first reader of the notices is told.
    case storeLost(reason: String)
}

/// What happens to a client from the moment on at which `notices` was read, until the client has ended. This sequence
/// and its iterators do not hold the client.
///
/// Several loops may read it at the same time, and each gets every notice. The first one begins where `notices` was
/// read, a further one where its iterator is made. A loop behind one that has ended goes on where that one has stopped.
public struct SyncNotices: AsyncSequence, Sendable {
    /// Notices, one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let lease: FeedSource<SyncNotice>.Lease

        /// The next notice; waits for it. Nil once the client has ended, or where the task is cancelled.
        public mutating func next() async -> SyncNotice? {
            await lease.feed.next()
        }
    }

    static let pendingMax = 256

    /// Keeps the last notices for a slow reader.
    @Sendable static func gather(_ pending: inout [SyncNotice], _ notice: SyncNotice) {
        if pending.count == pendingMax { pending.removeFirst() }
        pending.append(notice)
    }

    let source: FeedSource<SyncNotice>

    /// A reader of the notices; see above where it begins.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: source.lease())
    }
}
