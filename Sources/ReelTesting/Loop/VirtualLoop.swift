internal import ReelClient
internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// The serial executor of a world, with virtual time. All clients and the node run on it.
///
/// It has no thread of its own. A task of the global executor runs the work while there is some, and ends when there is
/// none. The thread that adds work never runs it: the caller may hold a lock, or be in the middle of other work.
final class VirtualLoop: SerialExecutor, Sendable {
    fileprivate enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
        case idle([CheckedContinuation<Void, Never>])
    }

    fileprivate struct State {
        var work: [Work] = []
        var batchEnds: [Work] = []
        /// Sorted by their times, and those of one time in the order in which they were made.
        var timers: [VirtualTimer] = []
        var nowMs: Int64 = 0
        var isRunning = false
        /// The thread that runs work at the moment.
        var thread: pthread_t?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// The virtual time since the world was made, in milliseconds.
    var nowMs: Int64 { state.withLock { $0.nowMs } }

    /// True on the thread that runs the loop's work at the moment.
    var isCurrent: Bool {
        state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    // MARK: Work

    /// Runs the body at once if the caller is on the loop, otherwise after all earlier work. From any thread.
    func execute(_ body: @escaping @Sendable () -> Void) {
        if isCurrent { body() } else { add(.body(body)) }
    }

    /// Runs the body on the loop, and returns its result.
    func run<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
        await withCheckedContinuation { waiter in add(.body { waiter.resume(returning: body()) }) }
    }

    /// Runs the body when no other work is left at this time.
    func atBatchEnd(_ body: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.batchEnds.append(.body(body))
            return state.claim()
        }
        if mustStart { start() }
    }

    /// Waits until no work is left at this time.
    func idle() async {
        await withCheckedContinuation { waiter in
            let isIdle = state.withLock { state in
                if state.isRunning { state.waiters.append(waiter) }
                return !state.isRunning
            }
            if isIdle { waiter.resume() }
        }
    }

    private func add(_ work: Work) {
        let mustStart = state.withLock { state in
            state.work.append(work)
            return state.claim()
        }
        if mustStart { start() }
    }

    private func start() { Task.detached { [self] in drain() } }

    private func drain() {
        state.withLock { $0.thread = pthread_self() }
        while true {
            let (works, isLast) = state.withLock { $0.next() }
            for work in works {
                switch work {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .body(let body): body()
                case .idle(let waiters): for waiter in waiters { waiter.resume() }
                }
            }
            if isLast { return }
        }
    }

    // MARK: Time

    /// Runs the body at a time, unless the timer is cancelled before.
    @discardableResult
    func at(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> VirtualTimer {
        let timer = VirtualTimer(ms: ms, body)
        let mustStart = state.withLock { state in
            let index = state.timers.lastIndex { $0.ms <= ms }.map { $0 + 1 } ?? 0
            state.timers.insert(timer, at: index)
            return ms <= state.nowMs && state.claim()
        }
        if mustStart { start() }
        return timer
    }

    /// Advances the time to the next timer. Returns false, and changes nothing, if there is none up to `limitMs`.
    func step(upTo limitMs: Int64) -> Bool {
        let (isFound, mustStart) = state.withLock { state in
            state.timers.removeAll(where: \.isCancelled)
            guard let next = state.timers.first, next.ms <= limitMs else { return (false, false) }
            state.nowMs = max(state.nowMs, next.ms)
            return (true, state.claim())
        }
        if mustStart { start() }
        return isFound
    }

    /// Advances the time, without running timers that end before.
    func advance(to ms: Int64) { state.withLock { $0.nowMs = max($0.nowMs, ms) } }

    // MARK: Executor

    func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    func checkIsolated() { precondition(isCurrent, "not on the world's executor") }

    func isIsolatingCurrentContext() -> Bool? { isCurrent }
}

extension VirtualLoop.State {
    /// Returns true if the caller must start a task that runs the work.
    fileprivate mutating func claim() -> Bool {
        guard !isRunning else { return false }
        isRunning = true
        return true
    }

    /// Takes the work that is next, and tells if it is the last of this run.
    fileprivate mutating func next() -> ([VirtualLoop.Work], isLast: Bool) {
        if !work.isEmpty {
            defer { work = [] }
            return (work, false)
        }
        if !batchEnds.isEmpty {
            defer { batchEnds = [] }
            return (batchEnds, false)
        }
        if let timer = timers.first, timer.ms <= nowMs {
            timers.removeFirst()
            return ([.body { timer.fire() }], false)
        }
        (isRunning, thread) = (false, nil)
        defer { waiters = [] }
        return ([.idle(waiters)], true)
    }
}

/// A timer of a virtual loop.
final class VirtualTimer: TransportHandle, Sendable {
    let ms: Int64
    private let body: Mutex<(@Sendable () -> Void)?>

    init(ms: Int64, _ body: @escaping @Sendable () -> Void) {
        self.ms = ms
        self.body = Mutex(body)
    }

    var isCancelled: Bool { body.withLock { $0 == nil } }

    func cancel() { body.withLock { $0 = nil } }

    func fire() {
        let body = body.withLock { $0.take() }
        body?()
    }
}
