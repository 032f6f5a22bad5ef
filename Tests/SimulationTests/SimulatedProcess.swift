import ReelBase
import ReelClient

@testable import ReelGateway

/// A process from its start to its end, with one loop. It can hang, and it can be killed;
/// after that, nothing of it runs.
///
/// Swift's tasks and actors use it as their executor. It runs their jobs on the only thread of the simulation.
final class SimulatedProcess: SerialExecutor, TaskExecutor, HostLoop, @unchecked Sendable {
    let name: String
    let time: VirtualTime
    let lane: Int
    var random: SeededGenerator
    private(set) var isAlive = true
    private var hangsUntilMs: Int64 = 0
    /// The work that has arrived while the process hangs.
    private var putOff: [() -> Void] = []
    private var jobs: [UnownedJob] = []
    private var beforeFlushBodies: [() -> Void] = []
    private var isRunning = false

    init(_ name: String, _ time: VirtualTime, seed: UInt64) {
        self.name = name
        self.time = time
        lane = time.addLane()
        // Adjacent seeds give shifted sequences of numbers, so the lane is mixed in first.
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

    /// Ends the hang and runs the work that has arrived in the meantime.
    func wakeUp() {
        hangsUntilMs = 0
        let bodies = putOff
        putOff = []
        for body in bodies { round(body) }
    }

    /// Runs the body as one round: then the jobs that it has enqueued, then the work that it has
    /// deferred to the end of the round.
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

    /// Runs a round at this time, or after a hang. The lane is the process's own, or the given one.
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

    /// The estimate is so high that the gateway coalesces whatever it can.
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

    func schedule(_ body: @escaping () -> Void) { after(0, body) }

    func once(after ms: Int64, _ body: @escaping () -> Void) -> any HostTimer { after(ms, body) }

    func every(_ ms: Int64, _ body: @escaping () -> Void) -> any HostTimer {
        final class Repeated: HostTimer {
            var next: Happening?
            func cancel() { next?.cancel() }
        }
        let repeated = Repeated()
        func again() {
            repeated.next = after(ms) {
                again()
                body()
            }
        }
        again()
        return repeated
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        let body = Unchecked(value: body)
        return { [self] value in after(0) { body.value(value) } }
    }

    // MARK: Executor

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
        // A task of a killed process ends, too: it has already got an error for what it waits for.
        if !isRunning { time.at(time.nowMs, lane) { [self] in finishRound() } }
    }

    func checkIsolated() {}
    func isIsolatingCurrentContext() -> Bool? { true }
}

struct Unchecked<Value>: @unchecked Sendable {
    var value: Value
}

extension Happening: HostTimer {}
