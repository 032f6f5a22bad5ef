internal import ReelCore

/// The connection, timers, streams, readers, waiting calls and store of a client. `end` releases all of them.
///
/// The last reference to a client can be released on any thread, and the resources belong to the transport's executor.
/// So the client's `deinit` passes this object to the executor. An isolated `deinit` would be shorter, but Swift 6.3
/// fails to compile an optimised module that uses a public actor with one ("circular reference").
final class ClientResources: @unchecked Sendable {
    var link: SyncClient.Link?
    var opened = OpenStreams()
    var tokenQuestion: SyncClient.TokenQuestion?
    var pollTimer: (any TransportHandle)?
    var answerTimer: (any TransportHandle)?
    var upkeepTimer: (any TransportHandle)?
    /// The timer of the next request for digests, or that request.
    var digestRequest: (any TransportHandle)?
    /// The statuses that apps read.
    let board = StatusBoard()
    /// The calls that wait until everything is synced.
    var syncs: [Int: CheckedContinuation<Void, any Error>] = [:]
    /// The times at which the calls that wait for a deadline end, in milliseconds, by the numbers of the calls.
    var deadlinesMs: [Int: Int64] = [:]
    let noticeFeeds = Feeds(SyncNotices.gather)
    /// The events that were enqueued and not taken yet.
    let inbox = Inbox()
    /// The device's store; nil for a closed client.
    var store: DeviceStore?
    /// True if the end of the client deletes the store.
    var erasesStore = false
    /// The error of deleting the store; nil: it was deleted, or stays.
    private(set) var eraseFailure: ReelError?
    /// The readable content of the streams.
    let content: ClientContent

    init(store: DeviceStore) {
        self.store = store
        content = ClientContent(store.storage)
    }

    /// Closes the connection. The streams stay open.
    func dropLink() {
        guard let link else { return }
        link.timer?.cancel()
        link.leaving?.cancel()
        link.renewal?.cancel()
        link.connection?.close()
        self.link = nil
        pollTimer?.cancel()
        pollTimer = nil
    }

    /// Releases everything. Each call that still waits throws `error`.
    func end(_ error: ReelError) {
        dropLink()
        tokenQuestion?.task.cancel()
        tokenQuestion?.deadline.cancel()
        tokenQuestion = nil
        inbox.close(error)
        // A call that throws the error is followed by no read that succeeds.
        content.end(error)
        for stream in opened.values { stream.end(error) }
        answerTimer?.cancel()
        upkeepTimer?.cancel()
        digestRequest?.cancel()
        for sync in syncs.values { sync.resume(throwing: error) }
        syncs = [:]
        board.close()
        noticeFeeds.close()
        endStore()
    }

    private func endStore() {
        let storage = store?.storage
        store = nil
        guard erasesStore else {
            storage?.close()
            return
        }
        do throws(ReelError) { try storage?.erase() } catch { eraseFailure = error }
    }
}

extension StreamState {
    /// Ends everything that runs for the stream. Each call that still waits throws `error`.
    func end(_ error: ReelError) {
        handles.cancelAll()
        sendTimer?.cancel()
        for publication in publications.values.joined() { publication.closed(error) }
        for commit in commits { commit(error) }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
        for (event, _) in enqueued { event.finish(.failure(error)) }
        for flush in flushes { flush.continuation.resume(throwing: error) }
        feeds.close()
        observers.signalEnd()
        publications = [:]
        commits = []
        waiters = []
        enqueued = []
        flushes = []
    }
}
