import ReelCore

@testable import ReelClient

/// The states of the table. For each state, inputs bring a machine into it. Cases that begin with `away` have no
/// connection.
enum StateCase: String, CaseIterable {
    /// Not opened.
    case idle
    /// A load was requested, and its answer has not begun.
    case loading
    /// A load is arriving.
    case arriving
    /// A load has arrived, and the client installs it.
    case installing
    /// The digest was requested, and has not arrived.
    case checking
    case awayChecking
    case awayLoading
    case awayArriving
    /// A load has arrived.
    case awayLoaded
    case subscribing
    /// Live without a gap.
    case live
    /// Live, and missing seqs were requested.
    case fetching
    /// Live, and a delta for a wide gap was requested.
    case jumping
    /// Live, and the client installs that delta.
    case landing
    /// Live, and the retry timer runs before the next fetch.
    case waiting
    /// The next poll is scheduled.
    case polled
    /// A poll is running.
    case asking
    /// The poll of this turn has reached the head.
    case current
    /// The next state is due later, on a slow connection.
    case resting
    case offline
    /// The retry timer runs.
    case retrying
    case awayRetrying
    case failed
    case awayFailed
}

extension StateCase {
    static let link = StreamSync.Link(epoch: Epoch(1), partitions: 4, fetchSeqs: 1_000)
    static let state = StreamSync.Loaded(seq: 10, epoch: Epoch(1), partition: 0)
    /// A delta that is shorter than the events that it replaces.
    static let shortState = StreamSync.Loaded(seq: 10, epoch: Epoch(1), partition: 0, isShort: true)
    /// A device that has folded all events up to its head, seq 10.
    static let facts = StreamSync.Facts(nowMs: 1_000, hasState: true, seq: 10, head: 10, takesDelta: true)
    static let gap = SeqRanges([11...12])
    static let wideGap = SeqRanges([11...30_010])
    static let overloaded = ReelError(.overloaded, "busy", retryMs: 700)
    static let forbidden = ReelError(.forbidden, "no right")

    /// The inputs that lead to the state.
    private var path: [(StreamSync.Input, SeqRanges)] {
        let none = SeqRanges()
        switch self {
        case .idle: return []
        case .loading: return [(.opened(.init(link: Self.link, hasPlace: true)), none)]
        case .arriving: return Self.loading.path + [(.progressed(.load), none)]
        case .installing: return Self.arriving.path + [(.loadFinished(Self.state), none)]
        case .checking: return Self.loading.path
        case .awayChecking, .awayLoading: return Self.loading.path + [(.connectionLost, none)]
        case .awayArriving: return Self.arriving.path + [(.connectionLost, none)]
        case .awayLoaded: return Self.awayArriving.path + [(.loadFinished(Self.state), none)]
        case .subscribing: return Self.installing.path + [(.installed(isTaken: true, before: .none), none)]
        case .live: return Self.subscribing.path + [(.subscribed(head: 10), none)]
        case .fetching: return Self.live.path + [(.proven(isAnswer: false), Self.gap)]
        case .jumping: return Self.live.path + [(.proven(isAnswer: false), Self.wideGap)]
        case .landing: return Self.jumping.path + [(.loadFinished(Self.state), Self.wideGap)]
        case .waiting: return Self.fetching.path + [(.fetchFailed(Self.overloaded), Self.gap)]
        case .polled: return Self.live.path + [(.placeChanged(false), none)]
        case .asking: return Self.polled.path + [(.timerFired(.poll), none)]
        case .current:
            let answer = StreamSync.PollAnswer(head: 10, isMoving: false, isQueueEmpty: false, idleMs: 30_000)
            return Self.asking.path + [(.pollAnswered(answer), none)]
        case .resting:
            return Self.live.path + [(.behind, none), (.loadFinished(Self.shortState), none)]
                + [(.installed(isTaken: true, before: .none), none)]
        case .offline: return Self.live.path + [(.connectionLost, none)]
        case .retrying: return Self.subscribing.path + [(.refused(Self.overloaded, .subscribe), none)]
        case .awayRetrying: return Self.awayArriving.path + [(.loadFailed(Self.overloaded), none)]
        case .failed: return Self.subscribing.path + [(.refused(Self.forbidden, .subscribe), none)]
        case .awayFailed: return Self.failed.path + [(.connectionLost, none)]
        }
    }

    /// A machine in this state.
    func machine(_ start: StartPosition = .snapshot) -> StreamSync {
        var machine = StreamSync(start: start)
        for (input, missing) in path {
            var facts = Self.facts
            facts.missing = missing
            facts.asksDigest = self == .checking || self == .awayChecking
            _ = machine.handle(input, facts)
        }
        return machine
    }

    /// Finds the state of a machine.
    init(_ machine: StreamSync) {
        self =
            switch machine.state {
            case .idle: .idle
            case .loading(let load) where load.kind == .digest: machine.link == nil ? .awayChecking : .checking
            case .loading(let load):
                switch load.step {
                case .asked: machine.link == nil ? .awayLoading : .loading
                case .arriving: machine.link == nil ? .awayArriving : .arriving
                case .loaded: machine.link == nil ? .awayLoaded : .installing
                }
            case .subscribing: .subscribing
            case .live(let live):
                switch live.gap {
                case nil: .live
                case .fetching: .fetching
                case .loading(let load): if case .loaded = load.step { .landing } else { .jumping }
                case .waiting: .waiting
                }
            case .polled where machine.reading != .events: .resting
            case .polled(let poll):
                switch poll.step {
                case .scheduled: .polled
                case .asking: .asking
                case .current: .current
                }
            case .paused(.offline): .offline
            case .paused(.retry): machine.link == nil ? .awayRetrying : .retrying
            case .failed: machine.link == nil ? .awayFailed : .failed
            }
    }
}

/// An input of the table.
struct InputCase {
    let name: String
    let input: StreamSync.Input
    /// The seqs that are missing at the time of the input.
    var missing = SeqRanges()

    static let all: [InputCase] = [
        .init(name: "opened", input: .opened(.init(link: StateCase.link, hasPlace: true))),
        .init(name: "opened offline", input: .opened(.init())),
        .init(name: "closed", input: .closed),
        .init(name: "connection opened", input: .connectionOpened(StateCase.link, hasPlace: true)),
        .init(name: "connection opened, no place", input: .connectionOpened(StateCase.link, hasPlace: false)),
        .init(name: "connection lost", input: .connectionLost),
        .init(name: "place given", input: .placeChanged(true)),
        .init(name: "place taken", input: .placeChanged(false)),
        .init(name: "token changed", input: .tokenChanged),
        .init(name: "epoch changed", input: .epochChanged),
        .init(name: "state dropped", input: .stateDropped),
        .init(name: "subscribed", input: .subscribed(head: 10)),
        .init(name: "lagged", input: .lagged),
        .init(name: "behind", input: .behind),
        .init(name: "proven, nothing missing", input: .proven(isAnswer: false)),
        .init(name: "proven, seqs missing", input: .proven(isAnswer: false), missing: StateCase.gap),
        .init(name: "piece of a fetch on the connection", input: .proven(isAnswer: true), missing: StateCase.gap),
        .init(name: "folded", input: .folded),
        .init(name: "subscription ended: overloaded", input: .refused(StateCase.overloaded, .subscription)),
        .init(name: "subscribe refused: overloaded", input: .refused(StateCase.overloaded, .subscribe)),
        .init(name: "subscribe refused: truncated", input: .refused(.init(.truncated, "gone"), .subscribe)),
        .init(name: "subscribe refused: limit", input: .refused(.init(.limit, "too many"), .subscribe)),
        .init(name: "subscribe refused: forbidden", input: .refused(StateCase.forbidden, .subscribe)),
        .init(name: "subscribe refused: diverged", input: .refused(.init(.diverged, "differs"), .subscribe)),
        .init(name: "subscribe refused: epoch changed", input: .refused(.init(.epochChanged, "ended"), .subscribe)),
        .init(name: "fetch refused: overloaded", input: .refused(StateCase.overloaded, .fetch)),
        .init(name: "another request refused: overloaded", input: .refused(StateCase.overloaded, .other)),
        .init(name: "unreadable", input: .unreadable(.init(.newerLog, "a barrier"))),
        .init(name: "piece of a load", input: .progressed(.load)),
        .init(name: "piece of a fetch by HTTP", input: .progressed(.fetch)),
        .init(name: "piece of a poll", input: .progressed(.poll)),
        .init(name: "load finished", input: .loadFinished(StateCase.state)),
        .init(name: "load finished, short delta", input: .loadFinished(StateCase.shortState)),
        .init(name: "load finished, other log", input: .loadFinished(.init(seq: 10, epoch: Epoch(2), partition: 0))),
        .init(name: "installed", input: .installed(isTaken: true, before: 3)),
        .init(name: "load failed", input: .loadFailed(.init(.logUnavailable, "cut"))),
        .init(name: "digest is the same", input: .digestAnswered(.same)),
        .init(name: "digest is another one", input: .digestAnswered(.other)),
        .init(name: "digest is behind", input: .digestAnswered(.behind)),
        .init(name: "fetch answered", input: .fetchAnswered),
        .init(name: "fetch failed", input: .fetchFailed(.init(.logUnavailable, "cut")), missing: StateCase.gap),
        .init(name: "fetch postponed", input: .fetchPostponed, missing: StateCase.gap),
        .init(
            name: "poll answered",
            input: .pollAnswered(.init(head: 10, isMoving: false, isQueueEmpty: true, idleMs: 30_000))
        ),
        .init(
            name: "poll answered, more to read",
            input: .pollAnswered(.init(head: 99, isMoving: false, isQueueEmpty: true, idleMs: 30_000))
        ),
        .init(name: "poll failed", input: .pollFailed(.init(.logUnavailable, "cut"))),
        .init(name: "poll failed: forbidden", input: .pollFailed(StateCase.forbidden)),
        .init(name: "event queued", input: .queued(fromMs: 1_500)),
        .init(name: "queue moved", input: .queueMoved),
        .init(name: "turn ended", input: .turnEnded),
        .init(name: "timer retry", input: .timerFired(.retry), missing: StateCase.gap),
        .init(name: "timer answer", input: .timerFired(.answer), missing: StateCase.gap),
        .init(name: "timer poll", input: .timerFired(.poll)),
    ]

    /// The facts at the time of the input.
    var facts: StreamSync.Facts {
        var facts = StateCase.facts
        facts.missing = missing
        return facts
    }
}

extension StreamSync.Input {
    /// The name of the case. A new case must be named here, and must be in the table.
    var kind: String {
        switch self {
        case .opened: "opened"
        case .closed: "closed"
        case .connectionOpened: "connectionOpened"
        case .connectionLost: "connectionLost"
        case .placeChanged: "placeChanged"
        case .tokenChanged: "tokenChanged"
        case .epochChanged: "epochChanged"
        case .stateDropped: "stateDropped"
        case .subscribed: "subscribed"
        case .lagged: "lagged"
        case .behind: "behind"
        case .proven: "proven"
        case .folded: "folded"
        case .refused: "refused"
        case .unreadable: "unreadable"
        case .progressed: "progressed"
        case .loadFinished: "loadFinished"
        case .installed: "installed"
        case .loadFailed: "loadFailed"
        case .digestAnswered: "digestAnswered"
        case .fetchAnswered: "fetchAnswered"
        case .fetchFailed: "fetchFailed"
        case .fetchPostponed: "fetchPostponed"
        case .pollAnswered: "pollAnswered"
        case .pollFailed: "pollFailed"
        case .queued: "queued"
        case .queueMoved: "queueMoved"
        case .turnEnded: "turnEnded"
        case .timerFired: "timerFired"
        }
    }

    static let kinds = 29
}

extension StreamSync.Action {
    /// The action as the table writes it.
    var text: String {
        switch self {
        case .subscribe(let position): "subscribe(\(position))"
        case .unsubscribe: "unsubscribe"
        case .load(let kind, let source): "load(\(kind) from \(source))"
        case .cancelLoad: "cancelLoad"
        case .install(let need): "install(\(need))"
        case .discardLoaded: "discardLoaded"
        case .fetch(let ranges, let source): "fetch(\(ranges) from \(source))"
        case .cancelFetch: "cancelFetch"
        case .poll: "poll"
        case .cancelPoll: "cancelPoll"
        case .startTimer(let timer, let ms): "start(\(timer) \(ms))"
        case .cancelTimer(let timer): "cancel(\(timer))"
        case .resume: "resume"
        case .stop(let error): "stop(\(error.code.rawValue))"
        case .leaveNode(let error): "leaveNode(\(error.code.rawValue))"
        case .notify(let notice): "notify(\(notice.text))"
        }
    }
}

extension StreamSync.Notice {
    fileprivate var text: String {
        switch self {
        case .live: "live"
        case .polled: "polled"
        case .stateRead: "stateRead"
        case .loaded: "loaded"
        case .noState(let error): "noState \(error.code.rawValue)"
        case .waits(let error): "waits \(error.code.rawValue)"
        case .notSubscribed(let error): "notSubscribed \(error.code.rawValue)"
        case .noPlace(let isNew): isNew ? "noPlace, new" : "noPlace"
        }
    }
}
