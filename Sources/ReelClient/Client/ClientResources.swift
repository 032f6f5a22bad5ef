internal import ReelCore

/// What a client must let go of when it ends: its connection, timers, readers, waiting calls and store.
///
/// They outlive the client by a moment. The last reference to the client may go on any thread, and they may only be
/// touched on the transport's executor. (An isolated `deinit` would do the same; Swift 6.3 cannot optimise a module
/// that uses a public actor with one.)
final class ClientResources: @unchecked Sendable {
    var link: SyncClient.Link?
    var opened = OpenStreams()
    var tokenQuestion: SyncClient.TokenQuestion?
    var pollTimer: (any TransportRequest)?
    var answerTimer: (any TransportRequest)?
    var stateSinks: [AsyncStream<SyncState>.Continuation] = []
    let noticeFeeds = Feeds(SyncNotices.gather)
    /// Nil where nothing is kept, and once the client is closed.
    var store: DeviceStore?

    init(store: DeviceStore?) {
        self.store = store
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
        for stream in opened.values { stream.connectionLost() }
    }

    /// Lets go of everything. Each call that waits for something throws the error.
    func end(_ error: ReelError) {
        dropLink()
        tokenQuestion?.task.cancel()
        tokenQuestion?.deadline.cancel()
        for stream in opened.values { stream.end(error) }
        answerTimer?.cancel()
        for sink in stateSinks { sink.finish() }
        stateSinks = []
        noticeFeeds.close()
        store = nil
    }
}

extension StreamState {
    fileprivate func end(_ error: ReelError) {
        connectionLost()
        dropCatchUp()
        sendTimer?.cancel()
        for publication in publications.values.joined() { publication.closed(error) }
        for commit in commits { commit.resume(throwing: error) }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
        feeds.close()
        publications = [:]
        commits = []
        waiters = []
    }
}
