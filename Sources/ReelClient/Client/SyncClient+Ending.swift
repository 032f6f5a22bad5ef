internal import ReelCore

// The end of a client and of an account.
extension SyncClient {
    /// How long a client that keeps nothing takes for the end of its sites, at most.
    static let closeMs: Int64 = 2_000
    /// No erasure waits longer for the end of its sites.
    static let eraseSecondsMax = 3_600

    /// Commits what is not yet, and closes the connection. The queue stays in the store. Calls that wait for
    /// something throw `closed`, as later calls do; `changes` and `notices` end.
    ///
    /// A client that keeps nothing first ends its sites in the streams that it has written to, so that they take no
    /// place there: only where it is connected and nothing waits, and within two seconds.
    public func close() async {
        guard !isClosed else { return }
        if store == nil, !isEnding {
            isEnding = true
            let isReady: (StreamState) -> Bool = { stream in
                (stream.phase == .live || stream.phase == .polled)
                    && !stream.outbox.isHeld && stream.outbox.entries.isEmpty
            }
            await endSites(of: opened.values.filter(isReady), ms: Self.closeMs)
            if isClosed { return }
        }
        finishTurn()
        end(.closed)
    }

    /// Ends the account on this device: deletes the store with all that it holds, and closes the client. Before that it
    /// ends the store's sites in the streams that it has written to, so that they take no place there.
    ///
    /// `discardsQueue`: also where own events wait; those that were never sent are dropped. `seconds`: how long the end
    /// of the sites may take. Returns the names of streams in which a site stays, because no node took its last event
    /// in time: an operator can retire it.
    ///
    /// Throws `store_waits` if own events wait and may not be dropped: nothing has changed then. Throws `store_failed`
    /// if the files cannot be deleted.
    @discardableResult
    public func erase(discardsQueue: Bool = false, withinSeconds seconds: Int = 10) async throws -> [String] {
        let held = try streams()
        let waiting = held.filter { $0.queued > 0 }
        if !discardsQueue, let first = waiting.first {
            let count = waiting.reduce(0) { $0 + $1.queued }
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
        let store = store
        end(.closed)
        try store?.deleteFiles()
        return staying
    }

    /// Puts a last event into the queue of each stream that the client's site has written to, and waits until the log
    /// has them. Returns the streams of which it does not.
    @discardableResult
    private func endSites(of streams: [StreamState], ms: Int64) async -> [String] {
        var ends: [(name: String, last: Publication)] = []
        for stream in streams where stream.outbox.nextOp > 0 && !hasEnded(stream) {
            let last = Publication(.last)
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
