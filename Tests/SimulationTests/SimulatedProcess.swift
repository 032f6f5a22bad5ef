import ReelClient

@testable import ReelGateway

/// One life of a process, with one loop. It can hang, and it can be killed; then nothing of it happens any more.
///
/// Swift's tasks and actors run on it too: what they enqueue is run here, on the one thread that there is.
final class SimulatedProcess: SerialExecutor, TaskExecutor, HostLoop, @unchecked Sendable {
    let name: String
    let time: VirtualTime
    let lane: Int
    var random: SeededGenerator
    private(set) var isAlive = true
    private var hangsUntilMs: Int64 = 0
    /// What has come while it hangs.
    private var putOff: [() -> Void] = []
    private var jobs: [UnownedJob] = []
    private var beforeFlushBodies: [() -> Void] = []
    private var isRunning = false

    init(_ name: String, _ time: VirtualTime, seed: UInt64) {
        self.name = name
        self.time = time
        lane = time.addLane()
        // Neighbouring seeds give shifted rows of numbers, so the lane is mixed in before.
        var mixer = SeededGenerator(seed: seed ^ UInt64(lane) << 32)
        random = SeededGenerator(seed: mixer.next())
    }

    var nowMs: Int64 { time.nowMs }
    var wallMs: Int64 { 1_800_000_000_000 + time.nowMs }

    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    func pick(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }

    // MARK: Life

    func kill() {
        isAlive = false
        putOff = []
    }

    func hang(untilMs ms: Int64) {
        hangsUntilMs = max(hangsUntilMs, ms)
        time.at(hangsUntilMs, lane) { [self] in if time.nowMs >= hangsUntilMs { wakeUp() } }
    }

    /// It goes on, with what has come meanwhile.
    func wakeUp() {
        hangsUntilMs = 0
        let bodies = putOff
        putOff = []
        for body in bodies { round(body) }
    }

    /// Runs the body as one round: then what it has enqueued, then what it has put off to the round's end.
    func round(_ body: () -> Void) {
        guard isAlive else { return }
        isRunning = true
        body()
        finishRound()
        isRunning = false
    }

    private func finishRound() {
        while !jobs.isEmpty || !beforeFlushBodies.isEmpty {
            let (tasks, bodies) = (jobs, jobs.isEmpty ? beforeFlushBodies : [])
            jobs = []
            if !bodies.isEmpty { beforeFlushBodies = [] }
            for task in tasks {
                task.runSynchronously(
                    isolatedTo: asUnownedSerialExecutor(),
                    taskExecutor: asUnownedTaskExecutor()
                )
            }
            for body in bodies where isAlive { body() }
        }
    }

    /// A round of its own at this time, or once it does not hang any more; in the process's own lane, or another.
    @discardableResult
    func at(_ ms: Int64, lane: Int? = nil, _ body: @escaping () -> Void) -> Happening {
        time.at(ms, lane ?? self.lane) { [self] in
            guard isAlive else { return }
            if hangsUntilMs > 0 { putOff.append(body) } else { round(body) }
        }
    }

    @discardableResult
    func after(_ ms: Int64, _ body: @escaping () -> Void) -> Happening { at(time.nowMs + ms, body) }

    // MARK: HostLoop

    /// So much that whatever is to gather does.
    var writeMicros: Double { 1e6 }
    func writing(toMost count: Int, _ body: () -> Void) { body() }

    func beforeFlush(_ body: @escaping () -> Void) {
        beforeFlushBodies.append(body)
        if !isRunning { after(0) {} }
    }

    func afterFlush(_ body: @escaping () -> Void) { beforeFlush(body) }

    func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        after(pick(0...5)) { [self] in
            let result = work()
            after(pick(0...5)) { then(result) }
        }
    }

    func every(_ ms: Int64, _ body: @escaping () -> Void) -> () -> Void {
        final class Repeated { var next: Happening? }
        let repeated = Repeated()
        func again() {
            repeated.next = after(ms) {
                again()
                body()
            }
        }
        again()
        return { repeated.next?.cancel() }
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        let body = Unchecked(value: body)
        return { [self] value in after(0) { body.value(value) } }
    }

    // MARK: Executor

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
        // A task of a killed process ends too: it has been told that nothing will come.
        if !isRunning { time.at(time.nowMs, lane) { [self] in finishRound() } }
    }

    func checkIsolated() {}
    func isIsolatingCurrentContext() -> Bool? { true }
}

struct Unchecked<Value>: @unchecked Sendable {
    var value: Value
}
