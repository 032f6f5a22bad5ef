import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ReelNet

@Suite(.timeLimit(.minutes(5))) struct EventLoopTests {
    @Test("runs jobs of many threads in their order") func runsJobsOfMany() async throws {
        try await withLoop { loop in
            let seen = Seen()
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<4 {
                    group.addTask {
                        for index in 0..<1000 {
                            loop.execute { seen.lists.withLock { $0[thread, default: []].append(index) } }
                        }
                    }
                }
            }
            try await loop.run {}
            for thread in 0..<4 { #expect(seen.lists.withLock { $0[thread] } == Array(0..<1000)) }
        }
    }

    @Test("an actor can live on a loop") func anActorCanLive() async throws {
        try await withLoop { loop in
            let actor = Pinned(loop)
            for _ in 0..<10 { await actor.count() }
            #expect(await actor.counted == 10)
            // A callback of the loop already runs in the actor's isolation.
            try await loop.run { actor.assumeIsolated { $0.count() } }
            #expect(await actor.counted == 11)
        }
    }

    @Test("timers fire once or again and stop when cancelled") func timersFireOnceOr() async throws {
        try await withLoop { loop in
            let fired = Counts()
            try await loop.run {
                loop.timer(after: .milliseconds(1)) { fired.add("once") }
                let cancelled = loop.timer(after: .milliseconds(2)) { fired.add("never") }
                cancelled.cancel()
                let again = Box<LoopTimer>()
                again.value = loop.timer(after: .zero, every: .milliseconds(1)) {
                    if fired.add("again") == 5 { again.value?.cancel() }
                }
            }
            try await eventually { fired["again"] == 5 && fired["once"] == 1 }
            try await loop.run {}
            #expect(fired["never"] == 0)
        }
    }

    @Test("deadlines pass late never early and can be moved") func deadlinesPassLateNever() async throws {
        try await withLoop { loop in
            let fired = Counts()
            let kept = Kept()
            let start = ContinuousClock.now
            try await loop.run {
                for (name, delay) in [("a", 50), ("b", 250), ("moved", 1)] {
                    let deadline = Deadline(on: loop) {
                        let early = ContinuousClock.now - start < .milliseconds(delay - 1)
                        fired.add(early ? "early" : name)
                    }
                    deadline.set(.milliseconds(delay))
                    if name == "moved" { deadline.set(.seconds(3600)) }
                    kept.append(deadline)
                }
                let cleared = Deadline(on: loop) { fired.add("cleared") }
                cleared.set(.milliseconds(1))
                cleared.clear()
                let sooner = Deadline(on: loop) { fired.add("sooner") }
                sooner.set(.seconds(3600))
                sooner.set(.milliseconds(1))
                kept.append(cleared)
                kept.append(sooner)
            }
            try await eventually { fired["a"] == 1 && fired["b"] == 1 && fired["sooner"] == 1 }
            #expect(fired["early"] == 0)
            #expect(fired["moved"] == 0)
            #expect(fired["cleared"] == 0)
            try await loop.run { kept.removeAll() }
        }
    }

    @Test("a deadline that is set in a long round counts from there") func aDeadlineThatIs() async throws {
        try await withLoop { loop in
            let fired = Counts()
            let kept = Kept()
            try await loop.run {
                usleep(1_500_000)
                let start = ContinuousClock.now
                let deadline = Deadline(on: loop) {
                    fired.add(ContinuousClock.now - start < .milliseconds(999) ? "early" : "late")
                }
                deadline.set(.seconds(1))
                kept.append(deadline)
            }
            try await eventually { fired["early"] + fired["late"] == 1 }
            #expect(fired["early"] == 0)
            try await loop.run { kept.removeAll() }
        }
    }

    @Test("a loop runs other tasks between throttled tasks") func interleavesThrottledTasks() async throws {
        try await withLoop { loop in
            let seen = Seen()
            try await loop.run {
                for number in 0..<3 {
                    loop.throttled {
                        seen.lists.withLock { $0[0, default: []].append(number) }
                        loop.execute { seen.lists.withLock { $0[0, default: []].append(10 + number) } }
                        return true
                    }
                }
                seen.lists.withLock { $0[0] = [-1] }
            }
            try await eventually { seen.lists.withLock { $0[0]?.count } == 7 }
            #expect(seen.lists.withLock { $0[0] } == [-1, 0, 10, 1, 11, 2, 12])
        }
    }

    @Test("a loop runs several throttled tasks per turn, and a task without work uses no turn")
    func groupsThrottledTasks() async throws {
        try await withLoop { loop in
            let seen = Seen()
            let begin = ContinuousClock.now
            try await loop.run {
                for number in 0..<2_000 {
                    loop.throttled {
                        seen.lists.withLock { $0[0, default: []].append(number) }
                        if number == 0 { loop.execute { seen.lists.withLock { $0[0, default: []].append(-1) } } }
                        // Every second task uses a turn. The first round has eight turns, so it runs 15 tasks.
                        return number % 2 == 0
                    }
                }
            }
            try await eventually { seen.lists.withLock { $0[0]?.count } == 2_001 }
            #expect(ContinuousClock.now - begin > .milliseconds(100), "they take turns")
            let all = seen.lists.withLock { $0[0] ?? [] }
            #expect(all.firstIndex(of: -1) == 15)
            #expect(all.filter { $0 >= 0 } == Array(0..<2_000))
            // After the last task, a new task runs without a delay.
            try await loop.run {
                loop.throttled {
                    seen.lists.withLock { $0[1] = [7] }
                    return true
                }
            }
            try await eventually { seen.lists.withLock { $0[1] } == [7] }
        }
    }

    @Test("bodies in the backlog run in order, a few in a round, so that other jobs of the loop run between them")
    func backlog() async throws {
        try await withLoop { loop in
            let seen = Seen()
            let see = { @Sendable (number: Int) in seen.lists.withLock { $0[0, default: []].append(number) } }
            try await loop.run {
                for number in 0..<20 {
                    loop.runInBacklog {
                        see(number)
                        // Each body takes longer than all bodies of a round may take together.
                        let end = ContinuousClock.now + BacklogQueue.time
                        while ContinuousClock.now < end {}
                        if number == 0 { loop.runInBacklog { see(20) } }
                        if number == 1 { loop.execute { see(-1) } }
                    }
                }
            }
            try await eventually { seen.lists.withLock { $0[0]?.count } == 22 }
            #expect(seen.lists.withLock { $0[0] } == [0, 1, -1] + Array(2...20))
            try await loop.run { loop.runInBacklog { see(99) } }
            try await eventually("the queue is used again") { seen.lists.withLock { $0[0]?.last } == 99 }
        }
    }

    @Test("a loop runs tasks after the flush later than tasks before the flush") func ordersFlushTasks() async throws {
        try await withLoop { loop in
            let seen = Seen()
            try await loop.run {
                loop.afterFlush { seen.lists.withLock { $0[0, default: []].append(2) } }
                loop.beforeFlush { seen.lists.withLock { $0[0, default: []].append(1) } }
            }
            try await eventually { seen.lists.withLock { $0[0] } == [1, 2] }
        }
    }

    @Test("offloaded work leaves the loop free") func offloadedWorkLeavesThe() async throws {
        try await withLoop { loop in
            let gate = DispatchSemaphore(value: 0)
            let fired = Counts()
            try await loop.run {
                loop.offload {
                    gate.wait()
                    return 42
                } then: {
                    loop.checkIsolated()
                    fired.add("\($0)")
                }
            }
            try await loop.run { _ = gate.signal() }
            try await eventually { fired["42"] == 1 }
        }
    }

    @Test("long work leaves places for short work") func longWorkLeavesPlaces() async throws {
        try await withLoop { loop in
            let gate = DispatchSemaphore(value: 0)
            let fired = Counts()
            try await loop.run {
                for _ in 0..<100 {
                    loop.offload(isLong: true) {
                        gate.wait()
                    } then: {
                        fired.add("long")
                    }
                }
                for _ in 0..<100 { loop.offload({}, then: { fired.add("short") }) }
            }
            try await eventually { fired["short"] == 100 }
            #expect(fired["long"] == 0)
            for _ in 0..<100 { gate.signal() }
            try await eventually { fired["long"] == 100 }
        }
    }

    @Test("a loop offloads long work to a few threads of lower priority") func longWorkYields() async throws {
        try await withLoop { loop in
            let fired = Counts()
            let niceness = { @Sendable in getpriority(Int32(PRIO_PROCESS.rawValue), 0) }
            try await loop.run {
                for _ in 0..<50 {
                    loop.offload(isLong: true) {
                        (pthread_self(), niceness())
                    } then: { thread, niceness in
                        fired.add("thread \(thread)")
                        fired.add("nice \(niceness)")
                    }
                    loop.offload(niceness, then: { fired.add("short nice \($0)") })
                }
            }
            try await eventually { fired["nice \(LowPriorityPool.niceness)"] == 50 && fired["short nice 0"] == 50 }
            #expect(fired.names.count { $0.hasPrefix("thread ") } <= LowPriorityPool.threads)
        }
    }

    @Test("a loop follows what writes cost") func aLoopFollowsWhat() {
        #expect(WriteCostEstimate.begin(31) == nil, "too few to tell")
        var cost = WriteCostEstimate()
        let micros = cost.micros
        cost.end(31, since: nil)
        #expect(cost.micros == micros)
        cost.end(1_000_000_000, since: WriteCostEstimate.begin(1_000_000_000))
        #expect((micros * 0.75...micros * 0.76).contains(cost.micros), "a quarter of the way to nothing")
    }

    @Test("a signal reaches the loop") func aSignalReachesThe() async throws {
        try await withLoop { loop in
            let fired = Counts()
            try await loop.run { _ = loop.onSignal(SIGUSR2) { fired.add("signal") } }
            kill(getpid(), SIGUSR2)
            try await eventually { fired["signal"] == 1 }
        }
    }

    @Test("ends with all that is on it") func endsWithAllThat() async throws {
        let loop = try EventLoop()
        let weakly = Weakly()
        try await loop.run {
            let server = HTTPServer(on: loop, handler: EchoHandler())
            try server.listen(on: SocketAddress("127.0.0.1", port: 0))
            weakly.object = server
            loop.timer(after: .seconds(3600)) { [server] in _ = server }
            loop.onSignal(SIGUSR1) { [server] in _ = server }
        }
        loop.stop()
        loop.join()
        #expect(weakly.object == nil)
        #expect(!loop.execute {})
        await #expect(throws: NetError.self) { try await loop.run {} }
    }

    private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        try await body(loop)
    }
}

private actor Pinned {
    private let loop: EventLoop
    private(set) var counted = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ loop: EventLoop) { self.loop = loop }

    func count() {
        loop.checkIsolated()
        counted += 1
    }
}

/// Counts by name; every method may be called from any thread.
final class Counts: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    @discardableResult
    func add(_ name: String) -> Int {
        counts.withLock {
            $0[name, default: 0] += 1
            return $0[name, default: 0]
        }
    }

    subscript(_ name: String) -> Int { counts.withLock { $0[name, default: 0] } }

    var names: [String] { counts.withLock { Array($0.keys) } }
}

private final class Seen: Sendable { let lists = Mutex<[Int: [Int]]>([:]) }

private final class Box<Value> { var value: Value? }

/// Objects of a loop that a test keeps alive. Only the loop uses them.
private final class Kept: @unchecked Sendable {
    private var things: [AnyObject] = []
    func append(_ thing: AnyObject) { things.append(thing) }
    func removeAll() { things = [] }
}

private final class Weakly: @unchecked Sendable { weak var object: AnyObject? }
