internal import ReelCore

// The end of a client and of an account.
extension SyncClient {
    /// The maximum time that a client without a file spends on ending its sites.
    static let closeMs: Int64 = 2_000
    /// The maximum of the deadline of `signOut`.
    static let signOutMsMax: Int64 = 3_600_000

    /// Commits all changes, and closes the connection. The queue stays in the store. Calls that wait throw `closed`,
    /// and so do later calls; the sequences of `changes()`, `notices()` and `statuses()` end.
    ///
    /// A client without a file first ends its sites in the streams that it has written to, so that they take no place
    /// there. It does that only for streams that are connected and have no waiting events, and for at most two seconds.
    public func close() async {
        guard !isClosed else { return }
        takeEnqueued()
        if keepsNothing, !isEnding {
            isEnding = true
            let isReady: (StreamState) -> Bool = { stream in
                (stream.sync.isLive || stream.sync.isPolled || stream.sync.maySend(at: stream.seq))
                    && !stream.outbox.isHeld && stream.outbox.entries.isEmpty
            }
            await endSites(of: opened.values.filter(isReady), ms: Self.closeMs)
            if isClosed { return }
        }
        // The store then says when each stream was up to date, to a minute.
        noteUpToDate(opened.values, wallMs: heardMs)
        for stream in opened.values where (stream.upToDateMs ?? 0) - (stream.storedUpToDateMs ?? 0) > 60_000 {
            markDirty(stream)
        }
        finishTurn()
        end(.closed)
    }

    /// The treatment of own events that wait when the user signs out.
    public enum WaitingEvents: Sendable {
        /// `signOut` throws an error, and changes nothing.
        case refuse
        /// The events are erased with the store. Those that a node has got may be in the stream.
        case erase
    }

    /// Ends the account on this device, with and without a network: closes the client, and deletes the store with
    /// everything in it. Before that it ends the store's sites in the streams that it has written to, so that they take
    /// no place there.
    ///
    /// From the moment at which the store notes the end of the account, nothing of the account can be read from it. If
    /// the process ends before the files are deleted, the next client that opens the store deletes them first.
    ///
    /// - Parameters:
    ///   - waiting: the treatment of own events that wait.
    ///   - deadline: the longest time for ending the sites, at most an hour.
    /// - Returns: The names of the streams in which a site stays, because no node took its last event in time. An
    ///   operator can retire such a site.
    /// - Throws: `store_waits` with the number of events and their streams if own events wait and are not to be erased;
    ///   nothing has changed then. `closed` if the client is closed, or is signing out already. `store_failed` if the
    ///   files cannot be deleted. Another code that begins with `store_` if the store failed.
    @discardableResult
    public func signOut(
        ifWaiting waiting: WaitingEvents = .refuse,
        deadline: Duration = .seconds(10)
    ) async throws -> [String] {
        takeEnqueued()
        try checkOpen()
        // A damaged store can be erased too.
        let call = "signOut(ifWaiting: .erase)"
        if waiting == .refuse, let error = ReelError(waitingIn: try streams(), discardedBy: call) { throw error }
        isEnding = true
        do throws(ReelError) {
            try store?.signOut()
        } catch {
            fail(error)
            throw error
        }
        resources.erasesStore = true
        // From here on nothing may prevent the end: the erased events would still be sent.
        discardQueues()
        var staying: [String] = []
        for name in (try? store?.writtenStreams()) ?? [] {
            do throws(ReelError) { try begin(name, .snapshot) } catch { staying.append(name.description) }
        }
        discardQueues()
        let ms = min(deadline.milliseconds, Self.signOutMsMax)
        staying += await endSites(of: Array(opened.values), ms: ms)
        if !isClosed { end(.closed) }
        if let failure = failure ?? resources.eraseFailure { throw failure }
        return staying
    }

    private func discardQueues() {
        for stream in opened.values {
            stream.outbox.discard()
            markDirty(stream)
        }
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

extension ReelError {
    private static let streamsNamed = 10

    /// Creates the error that own events wait in some of these streams; nil if no event waits.
    ///
    /// - Parameters:
    ///   - held: the streams.
    ///   - call: the call that discards the events.
    init?(waitingIn held: [LocalStream], discardedBy call: String) {
        let waiting = held.filter { $0.pendingCount > 0 }
        if waiting.isEmpty { return nil }
        let count = waiting.reduce(0) { $0 + $1.pendingCount }
        var streams = waiting.prefix(Self.streamsNamed).map { "\($0.id): \($0.pendingCount)" }
        if waiting.count > Self.streamsNamed { streams.append("\(waiting.count - Self.streamsNamed) other streams") }
        self.init(
            .storeWaits,
            "found \(count) own events that wait (\(streams.joined(separator: ", "))): wait until they are sent, or"
                + " discard them with `\(call)`"
        )
    }
}
