internal import ReelCore
internal import Synchronization

/// The latest status of a client and of its open streams. Safe on any thread: apps read it without waiting for the
/// client's executor, which writes it.
final class StatusBoard: Sendable {
    fileprivate typealias Reader<Status> = AsyncStream<Status>.Continuation

    fileprivate struct State {
        var client = SyncStatus()
        var streams: [StreamOpening: StreamStatus] = [:]
        /// The number of open streams that can still become up to date, and are not.
        var waitingStreams = 0
        var clientReaders: [Int: Reader<SyncStatus>] = [:]
        var streamReaders: [StreamOpening: [Int: Reader<StreamStatus>]] = [:]
        /// The number of readers that were ever made.
        var readers = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    var client: SyncStatus { state.withLock { $0.client } }

    /// True if each open stream that can be read is up to date, and no own event waits.
    var isSynced: Bool { state.withLock { $0.waitingStreams == 0 && $0.client.pendingCount == 0 } }

    func stream(_ opening: StreamOpening) -> StreamStatus { state.withLock { $0.streams[opening] } ?? StreamStatus() }

    /// Shows the client's node, deployment and problems. The counts of the streams stay.
    func show(_ status: SyncStatus) {
        change { state in
            var status = status
            (status.pendingCount, status.isUpToDate) = (state.client.pendingCount, state.client.isUpToDate)
            state.client = status
            return nil
        }
    }

    /// Shows the status of an open stream.
    func show(_ status: StreamStatus, of opening: StreamOpening) {
        change { state in
            guard state.streams[opening] != status, !state.isClosed else { return nil }
            state.count(state.streams.updateValue(status, forKey: opening), status)
            return state.streamReaders[opening].map { (Array($0.values), status) }
        }
    }

    /// Removes a stream that is not open any more, and ends its sequences.
    func remove(_ opening: StreamOpening) {
        let readers = state.withLock { $0.streamReaders.removeValue(forKey: opening) ?? [:] }
        change { state in
            guard let former = state.streams.removeValue(forKey: opening) else { return nil }
            state.count(former, nil)
            return (Array(readers.values), StreamStatus())
        }
        for reader in readers.values { reader.finish() }
    }

    /// Shows that the client and its streams are closed, and ends all sequences.
    func close() {
        let (clientReaders, streamReaders, client) = state.withLock { state in
            defer { (state.clientReaders, state.streamReaders, state.isClosed) = ([:], [:], true) }
            for opening in state.streams.keys { state.streams[opening]?.connection = .closed }
            (state.client.connectedNode, state.client.isUpToDate) = (nil, false)
            let streams = state.streamReaders.map { (state.streams[$0] ?? StreamStatus(), Array($1.values)) }
            return (Array(state.clientReaders.values), streams, state.client)
        }
        for reader in clientReaders {
            reader.yield(client)
            reader.finish()
        }
        for (status, readers) in streamReaders {
            for reader in readers {
                reader.yield(status)
                reader.finish()
            }
        }
    }

    /// Changes the state, and then gives the new status of the client, and of a stream, to their readers. A reader is
    /// resumed outside the lock.
    private func change(_ body: (inout State) -> ([Reader<StreamStatus>], StreamStatus)?) {
        let (stream, readers, client) = state.withLock { state in
            let former = state.client
            let stream = body(&state)
            let hasChanged = state.client != former
            return (stream, hasChanged ? Array(state.clientReaders.values) : [], state.client)
        }
        if let (readers, status) = stream { for reader in readers { reader.yield(status) } }
        for reader in readers { reader.yield(client) }
    }

    // MARK: Sequences

    func clientStatuses() -> AsyncStream<SyncStatus> {
        let (stream, reader) = AsyncStream.makeStream(of: SyncStatus.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            // Nobody waits for the first status yet.
            reader.yield(state.client)
            guard !state.isClosed else { return nil }
            state.readers += 1
            state.clientReaders[state.readers] = reader
            return state.readers
        }
        guard let number else {
            reader.finish()
            return stream
        }
        reader.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.clientReaders.removeValue(forKey: number) }
        }
        return stream
    }

    func statuses(of opening: StreamOpening) -> AsyncStream<StreamStatus> {
        let (stream, reader) = AsyncStream.makeStream(of: StreamStatus.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            reader.yield(state.streams[opening] ?? StreamStatus())
            guard !state.isClosed, state.streams[opening] != nil else { return nil }
            state.readers += 1
            state.streamReaders[opening, default: [:]][state.readers] = reader
            return state.readers
        }
        guard let number else {
            reader.finish()
            return stream
        }
        reader.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.streamReaders[opening]?.removeValue(forKey: number) }
        }
        return stream
    }
}

extension StatusBoard.State {
    /// Adapts the client's status to the change of a stream.
    fileprivate mutating func count(_ former: StreamStatus?, _ status: StreamStatus?) {
        client.pendingCount += (status?.pending.count ?? 0) - (former?.pending.count ?? 0)
        waitingStreams += (status?.isWaiting == true ? 1 : 0) - (former?.isWaiting == true ? 1 : 0)
        client.isUpToDate = !streams.isEmpty && waitingStreams == 0
    }
}

extension StreamStatus {
    /// True if the stream is not up to date, and can become so without another token or epoch.
    fileprivate var isWaiting: Bool {
        if case .failed = connection { false } else { !isUpToDate }
    }
}
