import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ReelClient

/// Random sequences of inputs, from honest and dishonest nodes.
@Suite struct StreamSyncPropertyTests {
    @Test("no two loads run at the same time, and each state has exactly the requests and timers that it waits for")
    func waitsForSomething() throws {
        var visits: [StateCase: Int] = [:]
        try Seeds.run(2_000) { seed in
            var run = SyncRun(seed: seed)
            for _ in 0..<100 {
                run.feed(run.randomInput(), run.randomFacts())
                visits[StateCase(run.machine), default: 0] += 1
                try #require(run.problem == nil, "seed \(seed): \(run.problem ?? "") after \(run.last)")
            }
        }
        guard TestSeed.given == nil else { return }
        // The client of these runs installs a state immediately.
        #expect(Set(visits.keys) == Set(StateCase.allCases).subtracting([.installing, .landing]))
    }

    @Test("a closed stream does nothing until it is opened again") func closedStream() throws {
        try Seeds.run(500) { seed in
            var run = SyncRun(seed: seed)
            for _ in 0..<50 { run.feed(run.randomInput(), run.randomFacts()) }
            run.feed(.closed, run.randomFacts())
            try #require(run.problem == nil, "seed \(seed): \(run.problem ?? "")")
            for entry in InputCase.all where entry.input.kind != "opened" {
                try #require(run.machine.handle(entry.input, entry.facts).isEmpty, "seed \(seed): \(entry.name)")
            }
            #expect(run.machine.state == .idle)
        }
    }

    @Test("a repeated fact leads to no further action and to the same state") func duplicates() throws {
        let facts: Set = [
            "opened", "closed", "connectionOpened", "connectionLost", "placeChanged", "tokenChanged", "epochChanged",
            "stateDropped", "subscribed", "lagged", "behind", "folded", "unreadable", "turnEnded",
        ]
        try Seeds.run(1_000) { seed in
            var run = SyncRun(seed: seed)
            for _ in 0..<100 {
                let (input, now) = (run.randomInput(), run.randomFacts())
                run.feed(input, now)
                guard facts.contains(input.kind) || input == .proven(isAnswer: false) else { continue }
                let before = run.machine
                let actions = run.machine.handle(input, now)
                try #require(actions.isEmpty && run.machine == before, "seed \(seed): \(input) leads to \(actions)")
            }
        }
    }

    @Test("an honest node brings a stream from every state to live events or to polling") func isNeverStuck() throws {
        try Seeds.run(1_000) { seed in
            var run = SyncRun(seed: seed)
            run.feed(.opened(.init()), run.randomFacts())
            for _ in 0..<run.random(60) { run.feed(run.randomInput(closes: false), run.randomFacts()) }
            var steps = 0
            while let input = run.honestInput {
                run.feed(input, StateCase.facts)
                steps += 1
                try #require(run.problem == nil, "seed \(seed): \(run.problem ?? "") after \(run.last)")
                try #require(steps < 30, "seed \(seed): still \(run.machine.state)")
            }
        }
    }
}

/// A machine, and a client that performs its actions and runs nothing else.
struct SyncRun {
    private var generator: SeededGenerator
    var machine: StreamSync
    private var requests: Set<StreamSync.Request> = []
    private var timers: Set<StreamSync.Timer> = []
    private var isSubscribed = false
    private var holdsState = false
    /// The first property that is false.
    private(set) var problem: String?
    private(set) var last = ""

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        let starts: [StartPosition] = [.snapshot, .latest, .beginning]
        let start = starts[Int(generator.next() % 3)]
        machine = StreamSync(start: start, gapSource: generator.next() % 2 == 0 ? .connection : .peers)
    }

    // MARK: Inputs

    mutating func random(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }

    /// Returns any input. One time in three it returns the input of an honest node and client, so that all states are
    /// reached.
    mutating func randomInput(closes: Bool = true) -> StreamSync.Input {
        if random(3) == 0, let input = honestInput { return input }
        while true {
            let input = InputCase.all[random(InputCase.all.count)].input
            if input != .closed || closes && random(5) == 0 { return input }
        }
    }

    mutating func randomFacts() -> StreamSync.Facts {
        var facts = StreamSync.Facts(nowMs: Int64(random(100_000)), nodes: 1 + random(3))
        facts.hasState = random(4) > 0
        guard facts.hasState else { return facts }
        facts.seq = Seq(random(50)) - 1
        facts.head = facts.seq + Seq([0, 5, 30_000][random(3)])
        facts.missing = [SeqRanges(), SeqRanges(), StateCase.gap, StateCase.wideGap][random(4)]
        facts.takesDelta = random(2) == 0
        facts.asksDigest = random(2) == 0
        return facts
    }

    /// The next input from a correct node and client; nil: nothing is missing.
    var honestInput: StreamSync.Input? {
        switch StateCase(machine) {
        case .idle: .opened(.init(link: StateCase.link, hasPlace: true))
        case .loading, .arriving, .jumping: .loadFinished(StateCase.state)
        case .checking: .digestAnswered(.same)
        case .awayChecking, .awayLoading, .awayArriving, .awayLoaded, .offline, .awayRetrying, .awayFailed:
            .connectionOpened(StateCase.link, hasPlace: true)
        case .subscribing: .subscribed(head: 10)
        case .fetching: .proven(isAnswer: true)
        case .waiting, .retrying: .timerFired(.retry)
        case .polled, .resting: .timerFired(.poll)
        case .asking: .pollAnswered(.init(head: 10, isMoving: false, isQueueEmpty: true, idleMs: 30_000))
        case .failed: .tokenChanged
        case .installing, .landing: .installed(isTaken: true, before: 3)
        case .live, .current: nil
        }
    }

    // MARK: The client

    mutating func feed(_ input: StreamSync.Input, _ facts: StreamSync.Facts) {
        last = "\(input) in \(StateCase(machine))"
        switch input {
        case .digestAnswered:
            guard machine.isCheckingDigest, requests.remove(.load) != nil else { return }
        case .loadFinished where machine.isCheckingDigest: return
        case .loadFinished, .loadFailed:
            // Cancelled requests cause no input.
            guard requests.remove(.load) != nil else { return }
            if case .loadFinished = input { holdsState = true }
        case .fetchAnswered, .fetchFailed, .fetchPostponed, .refused(_, .fetch): requests.remove(.fetch)
        case .pollAnswered, .pollFailed: guard requests.remove(.poll) != nil else { return }
        case .timerFired(let timer): guard timers.remove(timer) != nil else { return }
        case .connectionLost, .lagged, .refused: isSubscribed = false
        default: break
        }
        let actions = machine.handle(input, facts)
        for (index, action) in actions.enumerated() { perform(action, isLast: index == actions.count - 1, facts) }
        check(input, facts)
    }

    private mutating func perform(_ action: StreamSync.Action, isLast: Bool, _ facts: StreamSync.Facts) {
        switch action {
        case .subscribe:
            if isSubscribed { broken("two subscriptions") }
            isSubscribed = true
        case .unsubscribe: isSubscribed = false
        case .load: begin(.load)
        case .cancelLoad: if requests.remove(.load) == nil { broken("no load to cancel") }
        case .fetch:
            if !isLast { broken("an action after \(action)") }
            begin(.fetch)
        case .cancelFetch: requests.remove(.fetch)
        case .poll: begin(.poll)
        case .cancelPoll: if requests.remove(.poll) == nil { broken("no poll to cancel") }
        case .startTimer(let timer, let ms):
            if ms < 0 { broken("a timer of \(ms) ms") }
            timers.insert(timer)
        case .cancelTimer(let timer): timers.remove(timer)
        case .discardLoaded: holdsState = false
        case .install:
            if !holdsState || !isLast { broken("no state to install, or an action after it") }
            holdsState = false
            var facts = facts
            facts.hasState = true
            feed(.installed(isTaken: true, before: facts.seq - 1), facts)
        case .stop: if !isLast { broken("an action after \(action)") }
        case .leaveNode:
            if !isLast { broken("an action after \(action)") }
            feed(.connectionLost, facts)
        case .resume, .notify: break
        }
    }

    private mutating func begin(_ request: StreamSync.Request) {
        if !requests.isEmpty { broken("a \(request) beside \(requests)") }
        requests.insert(request)
    }

    private mutating func broken(_ problem: String) {
        if self.problem == nil { self.problem = problem }
    }

    // MARK: Properties

    private mutating func check(_ input: StreamSync.Input, _ facts: StreamSync.Facts) {
        let (request, timer) = expected
        if requests != Set([request].compactMap(\.self)) { broken("runs \(requests), expected \(request as Any)") }
        if timers != Set([timer].compactMap(\.self)) { broken("has the timers \(timers), expected \(timer as Any)") }
        let state = StateCase(machine)
        if state == .offline, machine.link != nil { broken("offline with a connection") }
        if machine.isSubscribed != isSubscribed, state != .failed, !isEndedByNode(input) {
            broken("subscribed: \(machine.isSubscribed), expected \(isSubscribed)")
        }
        isSubscribed = machine.isSubscribed
        if (state == .awayLoaded) != holdsState { broken("holds a state: \(holdsState)") }
        if input == .proven(isAnswer: false), state == .live, !facts.missing.isEmpty { broken("missing seqs wait") }
    }

    /// True if a node may have ended the subscription with this input.
    private func isEndedByNode(_ input: StreamSync.Input) -> Bool {
        switch input {
        case .refused, .lagged, .unreadable, .closed, .opened: true
        default: false
        }
    }

    /// The request and the timer for which the state waits.
    private var expected: (StreamSync.Request?, StreamSync.Timer?) {
        switch StateCase(machine) {
        case .loading, .arriving, .checking, .awayChecking, .awayLoading, .awayArriving, .jumping: (.load, .answer)
        case .fetching: (.fetch, .answer)
        case .asking: (.poll, .answer)
        case .waiting, .retrying, .awayRetrying: (nil, .retry)
        case .polled, .current, .resting: (nil, .poll)
        case .idle, .installing, .awayLoaded, .subscribing, .live, .landing, .offline, .failed, .awayFailed: (nil, nil)
        }
    }
}

extension StreamSync {
    /// True if the digest was requested, and has not arrived.
    fileprivate var isCheckingDigest: Bool {
        if case .loading(let load) = state { load.kind == .digest } else { false }
    }
}
