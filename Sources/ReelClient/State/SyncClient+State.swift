internal import ReelCore

// The state of the client as a value: what happens is fed to `ProblemList`, and what it comes to is told.
extension SyncClient {
    /// The node, the deployment, and the problems that hold at the moment. It can be read at any time, also after the
    /// client was closed or its store has failed.
    public var state: SyncState {
        SyncState(
            connectedNode: connectedNode,
            deployment: deployment?.description,
            otherDeployment: otherDeployment?.description,
            problems: problems.seen(nowMs: transport.nowMs)
        )
    }

    /// The state, and then the newest state after each change.
    nonisolated public var states: SyncStates {
        SyncStates { [weak self] in await self?.subscribeToStates() }
    }

    private func subscribeToStates() -> AsyncStream<SyncState> {
        let (stream, sink) = AsyncStream.makeStream(of: SyncState.self, bufferingPolicy: .bufferingNewest(1))
        sink.yield(state)
        if isClosed { sink.finish() } else { stateSinks.append(sink) }
        return stream
    }

    /// The problems of one stream.
    func problems(of name: StreamName) -> [SyncProblem] {
        state.problems.filter { $0.stream == name.description }
    }

    /// Takes what the client has seen, and tells the state if that has changed it.
    func note(_ input: ProblemList.Input) {
        guard problems.apply(input, nowMs: transport.nowMs), !stateSinks.isEmpty else { return }
        let state = state
        stateSinks.removeAll { sink in
            if case .terminated = sink.yield(state) { true } else { false }
        }
    }

    // MARK: Answers

    /// How long a node may leave a publish without an answer before that is a problem. Nodes call their log
    /// unavailable after as long.
    static let answerMs: Int64 = 5_000

    /// A publish of the stream was sent.
    func awaitAnswer(_ stream: StreamState) {
        if stream.unansweredSinceMs == nil { stream.unansweredSinceMs = transport.nowMs }
        lookForAnswers()
    }

    /// A node has answered an event of the stream. Others may wait.
    func answered(_ stream: StreamState) {
        stream.unansweredSinceMs = stream.outbox.inFlight > 0 ? transport.nowMs : nil
    }

    /// Looks again when the oldest publish that is not late yet will be.
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
                client.note(.unanswered(stream.name, sinceMs: sinceMs))
            }
            client.lookForAnswers()
        }
    }
}
