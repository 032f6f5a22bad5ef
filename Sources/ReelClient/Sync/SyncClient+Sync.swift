internal import ReelCore

// The client performs the actions of its streams' state machines, and gives the results back as inputs.
extension SyncClient {
    /// Gives an input to the state machine of a stream, and performs the actions that follow.
    func step(_ stream: StreamState, _ input: StreamSync.Input) {
        let wasSubscribed = stream.sync.isSubscribed
        let actions = stream.sync.handle(input, facts(of: stream))
        if wasSubscribed, !stream.sync.isSubscribed { stream.view?.unsubscribed() }
        for action in actions { perform(action, stream) }
        changedStatus(stream)
    }

    /// Reads the facts that the state machine of a stream depends on.
    private func facts(of stream: StreamState) -> StreamSync.Facts {
        var facts = StreamSync.Facts(nowMs: transport.nowMs, nodes: failover.nodes.count)
        guard let view = stream.view else { return facts }
        facts.hasState = true
        facts.seq = view.seq
        facts.head = view.head
        if let proven = view.proven, proven >= 0 { facts.missing = view.covered.gaps(in: 0...proven) }
        facts.takesDelta = view.seq >= max(0, view.fold.horizon)
        facts.asksDigest = asksDigest(of: view)
        return facts
    }

    /// The facts of the connection for state machines; nil: no node has sent `welcome` on it.
    var syncLink: StreamSync.Link? {
        link?.welcome.map {
            StreamSync.Link(epoch: $0.epoch, partitions: $0.partitions, fetchSeqs: Int64($0.limits.fetch))
        }
    }

    /// Performs an action of the state machine of a stream.
    private func perform(_ action: StreamSync.Action, _ stream: StreamState) {
        switch action {
        case .subscribe(let position): subscribeAtTurnEnd(stream, position)
        case .unsubscribe: unsubscribe(stream)
        case .load(.digest, _): askDigest(of: stream)
        case .load(let kind, let source): load(stream, kind, from: source)
        case .cancelLoad:
            forgetDigest(of: stream)
            stream.handles.cancel(request: .load)
            cutLoad(of: stream)
        case .install(let need): install(stream, for: need)
        case .discardLoaded:
            if let state = stream.handles.loaded.take() { discard(state.fold, of: stream) }
        case .fetch(let ranges, let source): fetch(stream, ranges, from: source)
        case .cancelFetch: stream.handles.cancel(request: .fetch)
        case .poll: poll(stream)
        case .cancelPoll: endPoll(stream)
        case .startTimer(.poll, let ms): askToPoll(stream, atMs: transport.nowMs + ms)
        case .cancelTimer(.poll): polls.remove(stream.name)
        case .startTimer(let timer, let ms): start(timer, ms, stream)
        case .cancelTimer(let timer): stream.handles.cancel(timer: timer)
        case .resume: stream.view?.resume()
        case .stop(let error):
            stream.unansweredSinceMs = nil
            notify(.streamFailed(stream: stream.name.description, reason: error.reason))
            arrangePlaces()
        case .leaveNode(let error): if let number = link?.number { lost(number, error.reason) }
        case .notify(let notice): tell(notice, stream)
        }
    }

    /// Starts a timer of a stream, in place of a running one of the same kind.
    private func start(_ timer: StreamSync.Timer, _ ms: Int64, _ stream: StreamState) {
        let name = stream.name
        let handle = after(ms) { client in
            guard let stream = client.opened[name] else { return }
            stream.handles.cancel(timer: timer)
            client.step(stream, .timerFired(timer))
        }
        stream.handles.keep(timer: timer, handle)
    }

    /// Sends `unsubscribe`. Answers to earlier subscribes of the stream no longer count.
    func unsubscribe(_ stream: StreamState) {
        // The collected subscribes are sent under the present reference.
        sendSubscribes()
        unsubscribes += 1
        send(ClientFrame(.unsubscribe(stream.name)))
    }

    /// Passes a notice to the app and to the list of problems.
    private func tell(_ notice: StreamSync.Notice, _ stream: StreamState) {
        let name = stream.name
        switch notice {
        case .live:
            note(.live(name))
            markDirty(stream)
        case .polled:
            note(.polled(name, noPlace))
            markDirty(stream)
        case .stateRead:
            note(.live(name))
            markDirty(stream)
        case .loaded: note(.stateCame(name))
        case .noState(let error): note(.noState(name, error))
        case .waits(let error): notify(.snapshotUnavailable(stream: name.description, reason: error.reason))
        case .notSubscribed(let error): note(.notSubscribed(name, error))
        case .noPlace(let isNew):
            note(.notSubscribed(name, noPlace))
            if isNew { notify(.streamFailed(stream: name.description, reason: noPlace.reason)) }
        }
    }
}

extension ReelError {
    /// The text `code: message`, for notices.
    fileprivate var reason: String { "\(code.rawValue): \(message)" }
}
