internal import ReelCore
internal import Synchronization

/// The latest status of a client and of its open streams. Safe on any thread: apps read it without waiting for the
/// client's executor, which writes it.
final class StatusBoard: Sendable {
    private struct State {
        var client = SyncStatus()
        var streams: [StreamOpening: StreamStatus] = [:]
        var waitingStreams = 0
        var clientReaders: [AsyncStream<SyncStatus>.Continuation] = []
        var streamReaders: [StreamOpening: [AsyncStream<StreamStatus>.Continuation]] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())

    var client: SyncStatus { state.withLock { $0.client } }

    func stream(_ opening: StreamOpening) -> StreamStatus { state.withLock { $0.streams[opening] } ?? StreamStatus() }

    /// Shows the client's node, deployment and problems.
    func show(_ status: SyncStatus) {
        state.withLock { state in
            var status = status
            (status.pendingCount, status.isUpToDate) = (state.client.pendingCount, state.client.isUpToDate)
            Self.show(status, &state)
        }
    }

    /// Shows the status of an open stream.
    func show(_ status: StreamStatus, of opening: StreamOpening) {
        state.withLock { state in
            let former = state.streams[opening]
            guard former != status, !state.isClosed else { return }
            state.streams[opening] = status
            Self.count(former, status, &state)
            state.streamReaders[opening]?.removeAll { Self.isGone($0.yield(status)) }
        }
    }

    /// Removes a stream that is not open any more, and ends its sequences.
    func remove(_ opening: StreamOpening) {
        state.withLock { state in
            guard let former = state.streams.removeValue(forKey: opening) else { return }
            Self.count(former, nil, &state)
            for reader in state.streamReaders.removeValue(forKey: opening) ?? [] { reader.finish() }
        }
    }

    /// Ends all sequences. The last status of the client stays readable.
    func close() {
        state.withLock { state in
            state.isClosed = true
            for reader in state.clientReaders { reader.finish() }
            for reader in state.streamReaders.values.joined() { reader.finish() }
            (state.clientReaders, state.streamReaders) = ([], [:])
            for opening in state.streams.keys { state.streams[opening]?.connection = .closed }
        }
    }

    // MARK: Sequences

    func clientStatuses() -> AsyncStream<SyncStatus> {
        state.withLock { state in
            let (stream, reader) = AsyncStream.makeStream(of: SyncStatus.self, bufferingPolicy: .bufferingNewest(1))
            reader.yield(state.client)
            if state.isClosed { reader.finish() } else { state.clientReaders.append(reader) }
            return stream
        }
    }

    func statuses(of opening: StreamOpening) -> AsyncStream<StreamStatus> {
        state.withLock { state in
            let (stream, reader) = AsyncStream.makeStream(of: StreamStatus.self, bufferingPolicy: .bufferingNewest(1))
            reader.yield(state.streams[opening] ?? StreamStatus())
            let isOpen = !state.isClosed && state.streams[opening] != nil
            if isOpen { state.streamReaders[opening, default: []].append(reader) } else { reader.finish() }
            return stream
        }
    }

    // MARK: Inside the lock

    /// Adapts the client's status to the change of a stream.
    private static func count(_ former: StreamStatus?, _ status: StreamStatus?, _ state: inout State) {
        var client = state.client
        client.pendingCount += (status?.pending.count ?? 0) - (former?.pending.count ?? 0)
        state.waitingStreams += (status?.isUpToDate == false ? 1 : 0) - (former?.isUpToDate == false ? 1 : 0)
        client.isUpToDate = state.waitingStreams == 0
        show(client, &state)
    }

    private static func show(_ status: SyncStatus, _ state: inout State) {
        guard state.client != status else { return }
        state.client = status
        state.clientReaders.removeAll { isGone($0.yield(status)) }
    }

    private static func isGone<Status>(_ result: AsyncStream<Status>.Continuation.YieldResult) -> Bool {
        if case .terminated = result { true } else { false }
    }
}
