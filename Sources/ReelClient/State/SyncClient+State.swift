internal import ReelCore

// The state of the client as a value. Observations go into `ProblemList`, and each change of the state is published.
extension SyncClient {
    /// The node, the deployment, and the present problems. It can be read at any time, also after the client was closed
    /// or its store has failed.
    public var state: SyncState {
        SyncState(
            connectedNode: connectedNode,
            deployment: deployment?.description,
            otherDeployment: otherDeployment?.description,
            problems: problems.seen(nowMs: transport.nowMs)
        )
    }

    /// The present state, and then the newest state after each change.
    nonisolated public var states: SyncStates {
        SyncStates { [weak self] in await self?.subscribeToStates() }
    }

    private func subscribeToStates() -> AsyncStream<SyncState> {
        let (stream, sink) = AsyncStream.makeStream(of: SyncState.self, bufferingPolicy: .bufferingNewest(1))
        sink.yield(state)
        if isClosed { sink.finish() } else { stateSinks.append(sink) }
        return stream
    }

    /// Returns the problems of one stream.
    func problems(of name: StreamName) -> [SyncProblem] {
        state.problems.filter { $0.stream == name.description }
    }

    /// Applies an observation, and publishes the state if it has changed.
    func note(_ input: ProblemList.Input) {
        guard problems.apply(input, nowMs: transport.nowMs), !stateSinks.isEmpty else { return }
        let state = state
        stateSinks.removeAll { sink in
            if case .terminated = sink.yield(state) { true } else { false }
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
                client.note(.unanswered(stream.name, sinceMs: sinceMs))
            }
            client.lookForAnswers()
        }
    }
}
