internal import ReelCore

// The status of the client and its streams as values, which apps read without waiting.
extension SyncClient {
    /// The node, the deployment, the queue and the present problems. It can be read on any thread at any time, also
    /// after the client was closed or its store has failed.
    nonisolated public var status: SyncStatus { resources.board.client }

    /// Returns the present status, and then the newest status after each change.
    nonisolated public func statuses() -> Statuses<SyncStatus> {
        Statuses { [board = resources.board] in board.clientStatuses() }
    }

    /// Applies an observation. If the problems have changed, the turn shows the status.
    func note(_ input: ProblemList.Input) {
        guard problems.apply(input, nowMs: transport.wallMs) else { return }
        changedStatus()
        if let name = input.stream {
            if let stream = opened[name] { changedStatus(stream) }
        } else {
            for stream in opened.values { changedStatus(stream) }
        }
    }

    /// Shows the present status of the client.
    func showStatus() {
        isStatusDue = false
        let isOffline = connectedNode == nil && problems.isOffline
        if !isOffline { offlineSinceMs = nil } else if offlineSinceMs == nil { offlineSinceMs = transport.wallMs }
        resources.board.show(
            SyncStatus(
                connectedNode: connectedNode,
                offlineSinceMs: offlineSinceMs,
                deployment: deployment?.description,
                otherDeployment: otherDeployment?.description,
                problems: problems.seen()
            )
        )
    }

    /// Notes that the status of the client may have changed. It is shown at the end of the turn.
    func changedStatus() {
        isStatusDue = true
        scheduleTurn()
    }

    func problems(of opening: StreamOpening) -> [SyncProblem] {
        // A client that was closed keeps the problems of its streams.
        guard isClosed || opened[opening] != nil else { return [] }
        return problems.seen(of: opening.name)
    }

    // MARK: Streams

    /// Notes that the status of a stream may have changed. It is shown at the end of the turn.
    func changedStatus(_ stream: StreamState) {
        guard !stream.isStatusDue, !isClosed else { return }
        stream.isStatusDue = true
        changedStatuses.append(stream)
        scheduleTurn()
    }

    /// Shows the statuses that may have changed.
    func showStatuses() {
        if isStatusDue { showStatus() }
        let streams = changedStatuses
        changedStatuses = []
        for stream in streams {
            stream.isStatusDue = false
            // The stream may have been closed in this turn.
            if opened[stream.opening] != nil { showStatus(of: stream) }
        }
        resumeSyncs()
    }

    func showStatus(of stream: StreamState) { resources.board.show(status(of: stream), of: stream.opening) }

    /// Notes at which time streams were up to date, while they are. `wallMs` is the time of the last news of the node.
    func noteUpToDate(_ streams: some Sequence<StreamState>, wallMs: Int64) {
        for stream in streams where content(of: stream) == .upToDate && stream.sync.isLive {
            stream.upToDateMs = wallMs
        }
    }

    private func status(of stream: StreamState) -> StreamStatus {
        let position = stream.readPosition
        var status = StreamStatus(
            content: content(of: stream),
            connection: connection(of: stream),
            seq: position.seq,
            epoch: position.epoch
        )
        if status.isUpToDate { stream.upToDateMs = transport.wallMs }
        status.upToDateMs = stream.upToDateMs
        if let first = stream.outbox.entries.first {
            status.pending = .init(
                count: stream.outbox.entries.count,
                sinceMs: first.sinceMs,
                reason: waitingReason(of: first, in: stream)
            )
        }
        status.problems = problems.seen(of: stream.name)
        return status
    }

    private func content(of stream: StreamState) -> StreamStatus.Content {
        let isComplete = stream.view != nil && stream.sync.isComplete
        if !isComplete {
            // The objects of the former log stay visible until the state of this one is here.
            if stream.view == nil, stream.former != nil { return .behind(seqs: nil) }
            if let progress = stream.progress { return .loading(bytes: progress.bytes, of: progress.expected) }
        }
        guard let view = stream.view, isComplete || view.seq >= 0 else { return .neverSynced }
        var (head, isRead) = (view.head, isComplete)
        if case .live(let live) = stream.sync.state {
            (head, isRead) = (max(head, live.head), isRead && live.gap == nil)
        }
        return isRead && view.seq >= head ? .upToDate : .behind(seqs: max(0, head - view.seq))
    }

    private func connection(of stream: StreamState) -> StreamStatus.Connection {
        if case .failed(let code) = stream.sync.state { return .failed(code) }
        if link?.welcome == nil { return .offline }
        switch stream.sync.state {
        case .idle: return .closed
        case .loading where stream.sync.reading == .states(isRecent: true): return .polled
        case .polled where stream.sync.reading == .states(isRecent: false): return .connecting
        case .loading, .subscribing: return .connecting
        case .live: return .live
        case .polled: return .polled
        case .paused: return .paused
        case .failed(let code): return .failed(code)
        }
    }

    // MARK: Answers

    /// The time after which a publish without an answer is a problem. Nodes report their log as unavailable after the
    /// same time.
    static let answerMs: Int64 = 5_000

    /// Called when a publish of the stream was sent.
    func awaitAnswer(_ stream: StreamState) {
        if stream.unansweredSinceMs == nil { stream.unansweredSinceMs = transport.nowMs }
        lookForAnswers()
    }

    /// Called when a node has answered an event of the stream. Other events may still wait.
    func answered(_ stream: StreamState) {
        stream.unansweredSinceMs = stream.outbox.inFlight > 0 ? transport.nowMs : nil
    }

    /// Schedules a check for the moment at which the oldest publish that is not late yet becomes late.
    private func lookForAnswers() {
        if answerTimer != nil { return }
        let nowMs = transport.nowMs
        let waiting = opened.values.compactMap(\.unansweredSinceMs).filter { nowMs - $0 < Self.answerMs }
        guard let oldestMs = waiting.min() else { return }
        answerTimer = after(max(10, oldestMs + Self.answerMs - nowMs)) { client in
            client.answerTimer = nil
            for stream in client.opened.values {
                guard let sinceMs = stream.unansweredSinceMs, client.transport.nowMs - sinceMs >= Self.answerMs else {
                    continue
                }
                let ageMs = client.transport.nowMs - sinceMs
                client.note(.unanswered(stream.name, sinceMs: client.transport.wallMs - ageMs))
            }
            client.lookForAnswers()
        }
    }
}
