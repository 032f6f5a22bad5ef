internal import ReelCore

/// The progress of one stream towards live events.
///
/// A pure state machine: `handle` takes an input and the present facts, and returns the actions to perform. It does no
/// I/O, reads no clock and holds no callback. The client performs the actions in their order, and gives the results
/// back as inputs. docs/explanation/stream-sync.md shows the states.
struct StreamSync: Sendable, Equatable {
    /// The state of a stream.
    enum State: Sendable, Equatable {
        /// The stream was not opened yet, or it was closed. Nothing is done for it.
        case idle
        /// A snapshot or delta is on its way, with or without a connection.
        case loading(Load)
        /// `subscribe` was sent.
        case subscribing
        /// Events are pushed.
        case live(Live)
        /// The connection has no subscription for the stream. The stream is polled by HTTP.
        case polled(Poll)
        /// Nothing runs until the connection or a timer comes.
        case paused(Pause)
        /// The stream has stopped because of an error with this code. Another token, connection or epoch restarts it.
        case failed(ErrorCode)
    }

    /// A running load.
    struct Load: Sendable, Equatable {
        /// The form of a state that a node sends.
        enum Kind: Sendable, Equatable {
            case snapshot
            case delta
            /// Only the digest of the state. It shows if the folded state is still the present one.
            case digest
        }

        /// The progress of a load.
        enum Step: Sendable, Equatable {
            /// No part of the answer has arrived.
            case asked
            /// A part of the answer has arrived.
            case arriving
            /// The state has arrived. It is installed once a connection names the number of partitions.
            case loaded(Loaded)
        }

        var kind: Kind
        /// True if the connected node was asked, so that the state is recent while the connection stays.
        var isRecent = true
        var step = Step.asked
    }

    /// A live subscription.
    struct Live: Sendable, Equatable {
        /// The head at the time of the subscription. Nothing is sent before this seq is folded, because only then it is
        /// known which bases are below the horizon.
        let head: Seq
        /// The work on the missing seqs below the proven ones; nil: nothing runs.
        var gap: Gap?
    }

    /// The way in which missing seqs are got.
    enum Gap: Sendable, Equatable {
        /// These ranges were requested.
        case fetching(SeqRanges)
        /// A snapshot or delta was requested. Events continue to arrive meanwhile.
        case loading(Load)
        /// The last attempt has failed. The retry timer runs.
        case waiting
    }

    /// The polling of a stream.
    struct Poll: Sendable, Equatable {
        /// The progress of polling.
        enum Step: Sendable, Equatable {
            /// The next poll is scheduled.
            case scheduled
            /// The next poll is scheduled, and this turn's fold has reached the head. Events may be handed over.
            case current
            /// A poll is running.
            case asking
        }

        var step = Step.scheduled
        /// The time of the last poll.
        var polledMs: Int64
        /// The minimum pause before the next poll while the queue waits.
        var pauseMs = StreamSync.pollMs
    }

    /// The reason for a pause.
    enum Pause: Sendable, Equatable {
        /// There is no connection. The client looks for one.
        case offline
        /// The last step has failed with this code. The retry timer runs.
        case retry(ErrorCode)
    }

    /// The next proof or state that the stream needs.
    enum Need: Sendable, Equatable {
        /// Events are enough.
        case events
        /// The stream begins with a snapshot or delta, or with its events if no node has one.
        case beginning
        /// A delta did not fit the folded state. The next subscription decides: it compares the last record with the
        /// log. If the log is the same, the state is wrong and is replaced by a snapshot.
        case proof
        /// Only a snapshot helps, because events or a delta do not reach back far enough.
        case snapshot
        /// The log was replaced. The first state of the next epoch settles what was consumed.
        case nextEpoch
    }

    /// The numbers of successive failures.
    struct Failures: Sendable, Equatable {
        var load = 0
        var fetch = 0
        var poll = 0
    }

    /// The form in which the stream is read while it has a connection.
    enum Reading: Sendable, Equatable {
        /// As events, by a subscription or by polling.
        case events
        /// As deltas, because the connection is slower than the events. `isRecent`: true if the connection has brought
        /// a state that is recent enough for handing over events.
        case states(isRecent: Bool)
    }

    /// The history of reading by states. It keeps a stream from changing the form of reading again and again.
    struct Slowness: Sendable, Equatable {
        /// The time at which reading by states has begun.
        var sinceMs: Int64 = 0
        /// The time of the last return to the events as a trial; nil: there was none.
        var triedMs: Int64?
        var trialMs = StreamSync.trialMs
        /// The time before which states are not read.
        var notBeforeMs: Int64 = 0
        var pauseMs: Int64 = 0
        /// The time at which the last connection was lost.
        var lostMs: Int64 = 0
    }

    /// A notice that is given once, until its cause has ended.
    enum Told: Sendable, Hashable {
        case waits
        case limited
    }

    /// The number of missing seqs from which a gap is closed by a delta instead of by its events.
    static let deltaFromSeqs: Int64 = 20_000
    /// The number of successive failures to get a state after which the stream is read from its events.
    static let loadFailuresMax = 3
    /// The timeout of a request until its answer begins, and of each piece of the answer. After it another node is
    /// asked, with twice the time. On a slow connection the answer is still on its way, and answers to repeated
    /// requests would queue after it.
    static let answerMs: Int64 = 3_000
    static let answerDoublings = 4
    /// The time between two polls of a stream with an empty queue.
    static let idlePollMs: Int64 = 30_000
    /// The shortest pause between two polls of a stream whose queue moves. The pause doubles with each poll that
    /// settles nothing of the queue, up to the pause for an empty queue.
    static let pollMs: Int64 = 200
    /// The pause between two deltas on a connection that is too slow for the events.
    static let statePauseMs: Int64 = 1_000
    /// The time after which a subscription is tried again, at first. It doubles with each attempt that shows that the
    /// connection is still too slow.
    static let trialMs: Int64 = 60_000
    static let trialMaxMs: Int64 = 600_000
    /// The time in states below which a return to the events was a mistake, and the first pause after such a return.
    static let shortMs: Int64 = 10_000
    /// The time without a connection after which nothing is known about the next one.
    static let awayMs: Int64 = 30_000

    let start: StartPosition
    /// The source from which missing seqs are requested first.
    let gapSource: SyncClient.GapSource
    var state = State.idle
    var need: Need
    /// True once the device has had the whole stream: from a snapshot, or by folding up to the head of a subscription.
    /// An object that a complete state lacks did not exist at that moment.
    var isComplete: Bool
    /// The present connection; nil: there is none.
    var link: Link?
    /// True if the stream is among those that get the subscriptions of the connection.
    var hasPlace = false
    /// The time at which the node has refused the subscription because the connection had too many; nil if it has not.
    var refusedMs: Int64?
    /// True if the next subscription begins with new events at once, even if earlier ones are missing.
    var beginsNow: Bool
    var failures = Failures()
    var reading = Reading.events
    var slowness = Slowness()
    /// True if a node has said that its log is not the one that this device knows, and no node has contradicted it
    /// since.
    var isDoubted = false
    var told: Set<Told> = []

    /// Creates the machine of a stream that is not opened yet. `isComplete`: true if the stored state is complete.
    init(start: StartPosition, gapSource: SyncClient.GapSource = .connection, isComplete: Bool = false) {
        self.start = start
        self.gapSource = gapSource
        self.isComplete = isComplete
        need = start == .snapshot ? .beginning : .events
        beginsNow = start == .latest
    }

    /// Applies an input, and returns the actions that follow from it. `.install`, `.fetch`, `.stop` and `.leaveNode`
    /// lead to further inputs, and are always the last action.
    mutating func handle(_ input: Input, _ facts: Facts) -> [Action] {
        if case .opened(let opening) = input { return opened(opening, facts) }
        if state == .idle { return [] }
        return switch input {
        case .opened: []
        case .closed: closed()
        case .connectionOpened(let link, let hasPlace): connectionOpened(link, hasPlace: hasPlace, facts)
        case .connectionLost: connectionLost(facts)
        case .placeChanged(let hasPlace): placeChanged(hasPlace, facts)
        case .tokenChanged: tokenChanged(facts)
        case .epochChanged: stateDropped(need: .nextEpoch)
        case .stateDropped: stateDropped(need: start == .beginning ? .events : .snapshot)
        case .subscribed(let head): subscribed(head: head, facts)
        case .lagged: lagged(facts)
        case .behind: behind(facts)
        case .proven(let isAnswer): proven(isAnswer: isAnswer, facts)
        case .folded: folded(facts)
        case .refused(let error, let subject): refused(error, subject, facts)
        case .unreadable(let error): unreadable(error)
        case .progressed(let request): progressed(request)
        case .loadFinished(let loaded): loadFinished(loaded)
        case .installed(let isTaken, let before): installed(isTaken: isTaken, before: before, facts)
        case .loadFailed(let error): loadFailed(error, facts)
        case .digestAnswered(let finding): digestAnswered(finding, facts)
        case .fetchAnswered: fetchAnswered(facts)
        case .fetchFailed(let error): fetchFailed(error, afterMs: 50)
        case .fetchPostponed: fetchPostponed()
        case .pollAnswered(let answer): pollAnswered(answer, facts)
        case .pollFailed(let error): pollFailed(error, facts)
        case .queued(let fromMs): pollSoon(notBeforeMs: fromMs, facts)
        case .queueMoved: queueMoved(facts)
        case .turnEnded: turnEnded()
        case .timerFired(.retry): retryFired(facts)
        case .timerFired(.answer): answerIsLate(facts)
        case .timerFired(.poll): pollIsDue(facts)
        }
    }

    // MARK: Steps

    /// Takes the next step towards live events. Nothing may be running.
    mutating func advance(_ facts: Facts) -> [Action] {
        if wantsState(facts), facts.nodes > 0 {
            let (load, actions) = beginLoad(facts, mayAskDigest: true)
            state = .loading(load)
            return actions
        }
        guard link != nil else {
            state = .paused(.offline)
            return []
        }
        if reading != .events { return readStates(facts) }
        guard hasPlace, refusedMs == nil else { return beginPolling(facts) }
        state = .subscribing
        return [.subscribe(beginsNow ? .now : .afterState)]
    }

    /// Waits for the retry timer, and then takes the next step.
    mutating func pause(_ code: ErrorCode, ms: Int64) -> [Action] {
        state = .paused(.retry(code))
        return [Self.retry(ms: ms)]
    }

    /// Returns the action that starts the retry timer, within 10 ms to 30 s.
    static func retry(ms: Int64) -> Action { .startTimer(.retry, ms: min(max(ms, 10), 30_000)) }

    /// Returns the timeout of a request after this number of failures.
    static func answerMs(_ failures: Int) -> Int64 { answerMs << Int64(min(failures, answerDoublings)) }

    /// The error of a request that has not been answered in time.
    static func late(_ failures: Int) -> ReelError {
        ReelError(.logUnavailable, "no answer within \(answerMs(failures)) ms")
    }

    /// The actions that cancel everything that runs in the present state.
    var cancellations: [Action] {
        switch state {
        case .loading(let load): Self.cancellations(of: load)
        case .live(let live):
            switch live.gap {
            case nil: []
            case .fetching: [.cancelFetch, .cancelTimer(.answer)]
            case .loading(let load): Self.cancellations(of: load)
            case .waiting: [.cancelTimer(.retry)]
            }
        case .polled(let poll): poll.step == .asking ? [.cancelPoll, .cancelTimer(.answer)] : [.cancelTimer(.poll)]
        case .paused(.retry): [.cancelTimer(.retry)]
        case .idle, .subscribing, .paused(.offline), .failed: []
        }
    }

    /// The actions that end a load.
    private static func cancellations(of load: Load) -> [Action] {
        if case .loaded = load.step { return [.discardLoaded] }
        return [.cancelLoad, .cancelTimer(.answer)]
    }

    /// Takes the step for which the retry timer ran.
    private mutating func retryFired(_ facts: Facts) -> [Action] {
        switch state {
        case .paused(.retry): return advance(facts)
        case .live(var live) where live.gap == .waiting:
            live.gap = nil
            state = .live(live)
            return fill(facts)
        default: return []
        }
    }

    /// Gives up the running request, which has not been answered in time.
    private mutating func answerIsLate(_ facts: Facts) -> [Action] {
        if isAwaitingLoad { return [.cancelLoad] + loadFailed(Self.late(failures.load), facts) }
        switch state {
        case .live: return fetchIsLate(facts)
        case .polled(let poll) where poll.step == .asking:
            return [.cancelPoll] + pollFailed(Self.late(failures.poll), facts)
        default: return []
        }
    }
}
