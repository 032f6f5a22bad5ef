internal import ReelCore

// The end of a client and of an account.
extension SyncClient {
    /// The maximum time that a client without a file spends on ending its sites.
    static let closeMs: Int64 = 2_000
    /// The maximum of `withinSeconds`.
    static let eraseSecondsMax = 3_600

    /// Commits all changes, and closes the connection. The queue stays in the store. Calls that wait throw `closed`,
    /// and so do later calls; `changes` and `notices` end.
    ///
    /// A client without a file first ends its sites in the streams that it has written to, so that they take no place
    /// there. It does that only for streams that are connected and have no waiting events, and for at most two seconds.
    public func close() async {
        guard !isClosed else { return }
        takeEnqueued()
        if keepsNothing, !isEnding {
            isEnding = true
            let isReady: (StreamState) -> Bool = { stream in
                (stream.sync.isLive || stream.sync.isPolled)
                    && !stream.outbox.isHeld && stream.outbox.entries.isEmpty
            }
            await endSites(of: opened.values.filter(isReady), ms: Self.closeMs)
            if isClosed { return }
        }
        finishTurn()
        end(.closed)
    }

    /// Ends the account on this device: deletes the store with everything in it, and closes the client. Before that it
    /// ends the store's sites in the streams that it has written to, so that they take no place there.
    ///
    /// - Parameters:
    ///   - discardsQueue: true to erase also if own events wait. Events that were never sent are dropped.
    ///   - seconds: the maximum time for ending the sites.
    /// - Returns: The names of the streams in which a site stays, because no node took its last event in time. An
    ///   operator can retire such a site.
    /// - Throws: `store_waits` if own events wait and may not be dropped; nothing has changed then. `store_failed` if
    ///   the files cannot be deleted.
    @discardableResult
    public func erase(discardsQueue: Bool = false, withinSeconds seconds: Int = 10) async throws -> [String] {
        takeEnqueued()
        let held = try streams()
        let waiting = held.filter { $0.pendingCount > 0 }
        if !discardsQueue, let first = waiting.first {
            let count = waiting.reduce(0) { $0 + $1.pendingCount }
            throw ReelError(
                .storeWaits,
                "found \(count) own events that wait, the first in the stream \(first.id): wait until they are sent, or"
                    + " discard the queue"
            )
        }
        isEnding = true
        for name in try store?.writtenStreams() ?? [] where opened[name] == nil { try begin(name, .snapshot) }
        for stream in opened.values {
            stream.outbox.discard()
            markDirty(stream)
        }
        let ms = Int64(max(0, min(seconds, Self.eraseSecondsMax))) * 1_000
        let staying = await endSites(of: Array(opened.values), ms: ms)
        if let failure { throw failure }
        let storage = store?.storage
        resources.store = nil
        end(.closed)
        try storage?.erase()
        return staying
    }

    /// Queues a last event in each stream that the client's site has written to, and waits until the log has these
    /// events. Returns the streams for which that failed.
    @discardableResult
    private func endSites(of streams: [StreamState], ms: Int64) async -> [String] {
        var ends: [(name: String, last: PublishHandle)] = []
        for stream in streams where stream.outbox.nextOp > 0 && !hasEnded(stream) {
            let last = PublishHandle(.last)
            let number = stream.outbox.add(.last, base: stream.seq) { _ in true }
            stream.publications[number] = [last]
            markDirty(stream)
            ends.append((stream.name.description, last))
        }
        guard !ends.isEmpty, !failover.nodes.isEmpty else { return ends.map(\.name) }
        let deadline = after(ms) { [lasts = ends.map(\.last)] _ in for last in lasts { last.closed(.closed) } }
        var staying: [String] = []
        for end in ends where (try? await end.last.acked()) == nil { staying.append(end.name) }
        deadline.cancel()
        return staying
    }

    private func hasEnded(_ stream: StreamState) -> Bool {
        stream.view?.fold.site(stream.outbox.site).map { $0.end != .none } ?? false
    }
}
