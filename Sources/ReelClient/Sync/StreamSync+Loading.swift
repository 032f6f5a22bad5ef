internal import ReelCore

// Loads: a snapshot, or a delta onto the folded state.
extension StreamSync {
    /// True if a state is requested before events are.
    func wantsState(_ facts: Facts) -> Bool {
        switch need {
        case .snapshot, .nextEpoch: true
        case .proof: false
        case .beginning: failures.load < Self.loadFailuresMax
        case .events: start != .beginning && !beginsNow && failures.load < Self.loadFailuresMax && facts.isFarBehind
        }
    }

    /// Called when events or a delta do not reach back far enough. A state of the next epoch helps as well.
    mutating func requireSnapshot() {
        reading = .events
        if need != .nextEpoch { need = .snapshot }
    }

    /// Returns a new load, and the actions that begin it. The connected node is known to be alive. If it had no answer,
    /// another node is asked.
    /// `mayAskDigest`: true if the digest of the state is asked for first. A first failure ends that.
    func beginLoad(_ facts: Facts, mayAskDigest: Bool = false) -> (Load, [Action]) {
        let asksDigest = mayAskDigest && facts.asksDigest && failures.load == 0
        var kind = facts.takesDelta && need != .snapshot ? Load.Kind.delta : .snapshot
        if kind == .delta, asksDigest, need == .beginning || need == .events { kind = .digest }
        let source = failures.load.isMultiple(of: 2) ? Source.connection : .peer
        let timeout = Action.startTimer(.answer, ms: Self.answerMs(failures.load))
        let isRecent = source == .connection && link != nil
        return (Load(kind: kind, isRecent: isRecent), [.load(kind, from: source), timeout])
    }

    /// Restarts the timeout, because a piece of the answer has arrived.
    mutating func progressed(_ request: Request) -> [Action] {
        switch (request, state) {
        case (.load, _) where isAwaitingLoad:
            // The next connection is asked for a digest again.
            if runningLoad?.kind != .digest { setStep(.arriving) }
            return [.startTimer(.answer, ms: Self.answerMs(failures.load))]
        case (.fetch, .live(let live)):
            guard case .fetching = live.gap else { return [] }
            return [.startTimer(.answer, ms: Self.answerMs(failures.fetch))]
        case (.poll, .polled(let poll)) where poll.step == .asking:
            return [.startTimer(.answer, ms: Self.answerMs(failures.poll))]
        default: return []
        }
    }

    /// Installs the state that has arrived, or keeps it until there is a connection.
    mutating func loadFinished(_ loaded: Loaded) -> [Action] {
        guard isAwaitingLoad, runningLoad?.kind != .digest else { return [] }
        setStep(.loaded(loaded))
        told.remove(.waits)
        let actions: [Action] = [.cancelTimer(.answer), .notify(.loaded)]
        guard link != nil else { return actions }
        if !isOfConnectedLog(loaded) { failures.load += 1 }
        return actions + install(loaded)
    }

    /// True if the connected node serves the log of the state.
    private func isOfConnectedLog(_ loaded: Loaded) -> Bool {
        link.map { loaded.epoch == $0.epoch && loaded.partition < $0.partitions } ?? false
    }

    /// Installs a state that has arrived. A state of another log comes from a node that differs from the connected one,
    /// and is requested again.
    mutating func install(_ loaded: Loaded) -> [Action] {
        if isOfConnectedLog(loaded) { return [.install(need)] }
        if need == .events, start == .snapshot { need = .beginning }
        return [.discardLoaded] + pauseLoad(.nodeBehind, ms: 500)
    }

    /// Continues after a state was installed.
    mutating func installed(isTaken: Bool, before: Seq, _ facts: Facts) -> [Action] {
        guard link != nil, let load = runningLoad, case .loaded(let loaded) = load.step else { return [] }
        if isTaken { isComplete = true }
        // The queue of a former epoch is settled by the first state of the next one, and by no other.
        if isTaken || need != .nextEpoch { need = .events }
        stateInstalled(helps: isTaken && loaded.isShort, isRecent: load.isRecent, facts)
        // A node that is not ahead of this device, or is far behind itself, does not help it over a gap.
        let helps = facts.seq > before && !facts.isFarBehind
        failures.load = helps ? 0 : failures.load + 1
        guard case .live(var live) = state else {
            let notice: [Action] = reading == .states(isRecent: true) ? [.notify(.stateRead)] : []
            return notice + advance(facts)
        }
        live.gap = nil
        state = .live(live)
        return fill(facts)
    }

    /// Continues without a state if the digest is that of the folded state, and otherwise loads a delta.
    mutating func digestAnswered(_ finding: DigestFinding, _ facts: Facts) -> [Action] {
        guard case .loading(let load) = state, load.kind == .digest else { return [] }
        switch finding {
        case .same:
            isComplete = true
            need = .events
            // A node that is far behind itself does not help.
            failures.load = facts.isFarBehind ? failures.load + 1 : 0
            told.remove(.waits)
            return [.cancelTimer(.answer), .notify(.loaded)] + advance(facts)
        case .behind:
            // The events tell what this node has not folded.
            failures.load += 1
            need = .events
            return [.cancelTimer(.answer)] + advance(facts)
        case .other:
            let (load, actions) = beginLoad(facts)
            state = .loading(load)
            return actions
        }
    }

    /// Called when a load that is cut has brought more than the ones before. Then earlier failures do not count.
    mutating func loadAdvanced() { failures.load = 0 }

    /// Decides from the error which state is needed next, and asks again after a pause.
    mutating func loadFailed(_ error: ReelError, _ facts: Facts) -> [Action] {
        guard isAwaitingLoad else { return [] }
        var actions: [Action] = [.cancelTimer(.answer)]
        failures.load += 1
        switch error.code {
        case .aheadOfLog, .diverged:
            reading = .events
            let isDecidedBySubscription = liveLoad == nil && facts.hasState
            if need == .beginning || need == .events { need = isDecidedBySubscription ? .proof : .snapshot }
        case .truncated, .badRange: requireSnapshot()
        case .epochChanged: break
        // Without a connection the problem `offline` is enough.
        default: if link != nil { actions.append(.notify(.noState(error))) }
        }
        if failures.load >= Self.loadFailuresMax, need == .snapshot || need == .nextEpoch, !told.contains(.waits) {
            // The state is not contained in events, so the client can only continue to ask.
            told.insert(.waits)
            actions.append(.notify(.waits(error)))
        }
        return actions + pauseLoad(error.code, ms: min(2_000, 10 << Int64(min(failures.load, 8))))
    }

    // MARK: The running load

    /// The load that runs beside the live subscription.
    var liveLoad: Load? {
        guard case .live(let live) = state, case .loading(let load) = live.gap else { return nil }
        return load
    }

    private var runningLoad: Load? {
        if case .loading(let load) = state { load } else { liveLoad }
    }

    /// True if a load has not arrived completely.
    var isAwaitingLoad: Bool {
        switch runningLoad?.step {
        case .asked, .arriving: true
        case .loaded, nil: false
        }
    }

    /// Records the progress of the running load.
    private mutating func setStep(_ step: Load.Step) {
        change { $0.step = step }
    }

    /// Records that the connection on which the running load was requested has ended.
    mutating func loadIsOld() {
        change { $0.isRecent = false }
    }

    private mutating func change(_ body: (inout Load) -> Void) {
        guard var load = runningLoad else { return }
        body(&load)
        if case .live(var live) = state {
            live.gap = .loading(load)
            state = .live(live)
        } else {
            state = .loading(load)
        }
    }

    /// Waits for the retry timer, beside the subscription if there is one.
    private mutating func pauseLoad(_ code: ErrorCode, ms: Int64) -> [Action] {
        guard case .live(var live) = state else { return pause(code, ms: ms) }
        live.gap = .waiting
        state = .live(live)
        return [Self.retry(ms: ms)]
    }
}
