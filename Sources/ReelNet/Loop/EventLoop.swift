import CLibuv
import CLinux
import Glibc
import Synchronization

/// One thread that waits for sockets, timers and jobs from other threads, on libuv.
///
/// Everything that belongs to a loop (connections, servers, timers) is made and used on its thread and is not
/// `Sendable`; `LoopBound` carries a reference to it through other threads. Work reaches the loop by `execute`, `run`
/// or `sync`. A loop is also a serial executor: an actor can be pinned to it.
///
/// A loop changes nothing of its process: no environment variable, no signal handler. A program with much blocking work
/// sets `UV_THREADPOOL_SIZE` before it starts its first loop.
///
/// One round of the loop: wait, call back for what happened, run the bodies of `beforeFlush`, then offer to the kernel
/// what the connections have collected: one write per connection and round, and one for what a connection answers by
/// itself to what it has read. Then the bodies of `afterFlush`, which write to many by themselves.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    private enum Job {
        case closure(@Sendable () -> Void)
        case task(UnownedJob)
    }

    private struct Inbox {
        var jobs: [Job] = []
        var isClosed = false
    }

    let handle = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private let wake = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let prepare = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
    private let check = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
    private let inbox = Mutex(Inbox())
    private let joining = Mutex(false)
    private var thread = pthread_t()

    // Used on the loop's thread only.
    /// Made when the first message is packed; nil where there is no memory for it.
    lazy var deflater = MessageDeflater()
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    let writeBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    /// For what TLS opens: all of a full `readBuffer` and the record that it may complete.
    var openedBuffer: UnsafeMutableRawBufferPointer {
        if let buffer = openedBufferIfMade { return buffer }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 96 << 10, alignment: 16)
        openedBufferIfMade = buffer
        return buffer
    }
    private var openedBufferIfMade: UnsafeMutableRawBufferPointer?
    private var unflushed: [TCPConnection] = []
    private var writeCost = WriteCostEstimate()
    private var beforeFlushBodies: [() -> Void] = []
    private var afterFlushBodies: [() -> Void] = []
    /// Calls of `send` so far.
    var writes = 0
    /// What is run at a pace, from `nextThrottled` on.
    private var throttledBodies: [(() -> Bool)?] = []
    private var nextThrottled = 0
    /// Runs as long as there was something to run the last time: who comes then is not sooner than others.
    private var pace: LoopTimer?
    var offloads = OffloadQueue()
    var backlog = BacklogQueue()
    private(set) lazy var wheel = DeadlineWheel(loop: self)
    let date = HTTPDate()
    /// Holds SIGPIPE back while libuv writes to a connection.
    var brokenPipes = BrokenPipeGuard()

    /// Starts the thread. It runs until `stop`.
    public init() throws(NetError) {
        try Self.checkDescriptors()
        var status = uv_loop_init(handle)
        guard status == 0 else { throw NetError(status: status, "starting an event loop") }
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        status = uv_async_init(handle, wake) { $0!.pointee.loop.eventLoop.runJobs() }
        guard status == 0 else { throw NetError(status: status, "starting an event loop") }
        wake.pointee.data = nil
        uv_prepare_init(handle, prepare)
        uv_prepare_start(prepare) { $0!.pointee.loop.eventLoop.finishRound() }
        uv_check_init(handle, check)
        uv_check_start(check) { $0!.pointee.loop.eventLoop.finishRound() }
        let started = pthread_create(&thread, nil, Self.main, Context.pass(self))
        guard started == 0 else { throw NetError(status: -started, "starting a thread") }
    }

    deinit {
        handle.deallocate()
        wake.deallocate()
        prepare.deallocate()
        check.deallocate()
        readBuffer.deallocate()
        writeBuffer.deallocate()
        openedBufferIfMade?.deallocate()
    }

    /// Between two bodies that are paced.
    private static let throttleInterval = Duration.milliseconds(2)
    /// Where more wait than these, several are run at once: all have been within a second or two.
    private static let throttledMax = 250

    /// Where libuv finds no descriptors for the pipe of its signals, which the first loop makes, it aborts the process.
    private static func checkDescriptors() throws(NetError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw NetError(status: -errno, "starting an event loop") }
        for end in ends { Glibc.close(end) }
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        let loop = Context.take(context, as: EventLoop.self)
        _ = reel_name_thread("reel-loop")
        uv_run(loop.handle, UV_RUN_DEFAULT)
        // What the last callbacks have made anew ends too.
        while uv_loop_alive(loop.handle) != 0 {
            uv_walk(loop.handle, { handle, _ in EventLoop.close(handle!) }, nil)
            uv_run(loop.handle, UV_RUN_ONCE)
        }
        uv_loop_close(loop.handle)
        // They hold the loop.
        (loop.throttledBodies, loop.afterFlushBodies) = ([], [])
        loop.backlog.removeAll()
        return nil
    }

    // MARK: Jobs

    /// Whether the caller is on the loop's thread.
    public var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Runs the job on the loop, behind those already given; many in a burst cost one wake. From any thread.
    /// False, and the job is dropped, once the loop has stopped.
    @discardableResult
    public func execute(_ job: @escaping @Sendable () -> Void) -> Bool {
        add(.closure(job))
    }

    /// Runs the body on the loop and gives its result back. Throws `closed` once the loop has stopped.
    public func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let taken = execute { continuation.resume(with: Result { try body() }) }
            if !taken { continuation.resume(throwing: NetError(.closed, "the event loop has stopped")) }
        }
    }

    /// Runs the body on the loop while the calling thread waits; on the loop itself, at once. For the start and the
    /// end of a process. Throws `closed` once the loop has stopped.
    public func sync<T: Sendable>(_ body: @escaping @Sendable () throws -> T) throws -> T {
        if isCurrent { return try body() }
        let answer = Answer<T>()
        guard execute({ answer.give(Result { try body() }) }) else {
            throw NetError(.closed, "the event loop has stopped")
        }
        return try answer.wait()
    }

    /// Runs the body on the loop once, at the end of this round, before what was written goes out: the place for work
    /// that gathers what a round has brought.
    public func beforeFlush(_ body: @escaping () -> Void) {
        beforeFlushBodies.append(body)
    }

    /// Runs the body on the loop once, behind what this round writes: the place for what writes to many. On the loop.
    public func afterFlush(_ body: @escaping () -> Void) {
        afterFlushBodies.append(body)
    }

    /// Runs the body on the loop once, at a pace: one such body in two milliseconds, in their order, and more where
    /// hundreds wait. A crowd of them leaves the loop and the machine time for what cannot wait. One that comes back
    /// false had nothing to do and does not count. What waits when the loop stops is dropped. On the loop.
    public func throttled(_ body: @escaping () -> Bool) {
        throttledBodies.append(body)
        guard pace == nil else { return }
        pace = timer(after: .zero, every: Self.throttleInterval) { [unowned self] in runThrottled() }
    }

    private func runThrottled() {
        guard nextThrottled < throttledBodies.count else {
            (throttledBodies, nextThrottled) = ([], 0)
            pace?.cancel()
            return pace = nil
        }
        var left = max(1, (throttledBodies.count - nextThrottled) / Self.throttledMax)
        while left > 0, nextThrottled < throttledBodies.count {
            let body = throttledBodies[nextThrottled]
            throttledBodies[nextThrottled] = nil
            nextThrottled += 1
            if body?() == true { left -= 1 }
        }
        if nextThrottled > 1_000 {
            throttledBodies.removeFirst(nextThrottled)
            nextThrottled = 0
        }
    }

    private func add(_ job: Job) -> Bool {
        inbox.withLock { inbox in
            if inbox.isClosed { return false }
            inbox.jobs.append(job)
            // Under the lock: once the inbox is closed, `wake` may be gone.
            if inbox.jobs.count == 1 { uv_async_send(wake) }
            return true
        }
    }

    private func runJobs() {
        let jobs = inbox.withLock { inbox in
            let jobs = inbox.jobs
            inbox.jobs = []
            return jobs
        }
        for job in jobs {
            switch job {
            case .closure(let body): body()
            case .task(let task): task.runSynchronously(on: asUnownedSerialExecutor())
            }
        }
    }

    private func finishRound() {
        guard !beforeFlushBodies.isEmpty || !unflushed.isEmpty || !afterFlushBodies.isEmpty else { return }
        let bodies = beforeFlushBodies
        beforeFlushBodies = []
        for body in bodies { body() }
        let connections = unflushed
        unflushed = []
        unflushed.reserveCapacity(connections.count)
        writing(toMost: connections.count) {
            for connection in connections { connection.flush() }
        }
        let others = afterFlushBodies
        afterFlushBodies = []
        for body in others { body() }
        // Who wrote again while being flushed waits for the next round, which then must not wait for anything.
        if !beforeFlushBodies.isEmpty || !unflushed.isEmpty || !afterFlushBodies.isEmpty { uv_async_send(wake) }
    }

    /// About how many microseconds of the loop's processor time the write to one connection takes of late. On the loop.
    public var writeMicros: Double { writeCost.micros }

    /// Writes to so many connections at most, which the loop learns from what a write costs. On the loop.
    public func writing(toMost count: Int, _ body: () -> Void) {
        let (begin, before) = (WriteCostEstimate.begin(count), writes)
        body()
        writeCost.end(writes - before, since: begin)
    }

    /// Has the connection flushed at the end of the round. On the loop.
    func flushAtRoundEnd(_ connection: TCPConnection) {
        unflushed.append(connection)
    }

    // MARK: Executor

    /// A task of an actor that is pinned to this loop.
    public func enqueue(_ job: consuming ExecutorJob) {
        // A task that comes after the end has nowhere to run: its actor outlived its loop.
        _ = add(.task(UnownedJob(job)))
    }

    /// Traps unless called on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the event loop's thread")
    }

    /// Whether the caller is on the loop's thread.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    // MARK: End

    /// Closes everything on the loop and lets its thread end. From any thread; returns at once.
    public func stop() {
        execute { self.closeAll() }
    }

    /// Waits until the thread has ended, after `stop`. On the loop itself, where an owner's last reference may end, it
    /// does not wait: the thread then ends by itself.
    public func join() {
        joining.withLock { isJoined in
            if isJoined { return }
            isJoined = true
            if isCurrent { pthread_detach(thread) } else { pthread_join(thread, nil) }
        }
    }

    /// Lets the thread end by itself, after `stop`: for an owner who ends and waits for nothing.
    public func leave() {
        joining.withLock { isJoined in
            if !isJoined { pthread_detach(thread) }
            isJoined = true
        }
    }

    private func closeAll() {
        // Jobs behind this one still run: they were accepted.
        var rest: [Job] = []
        repeat {
            runJobs()
            rest = inbox.withLock { inbox in
                inbox.isClosed = inbox.jobs.isEmpty
                return inbox.jobs
            }
        } while !rest.isEmpty
        finishRound()
        uv_stop(handle)
    }

    /// Every kind of handle that may live on a loop ends here.
    private static func close(_ handle: UnsafeMutablePointer<uv_handle_t>) {
        guard uv_is_closing(handle) == 0 else { return }
        switch handle.pointee.type {
        case UV_TCP: Context.borrow(handle.pointee.data, as: TCPConnection.self).close()
        case UV_TIMER: Context.borrow(handle.pointee.data, as: LoopTimer.self).cancel()
        case UV_SIGNAL: Context.borrow(handle.pointee.data, as: SignalWatch.self).cancel()
        case UV_POLL: Context.borrow(handle.pointee.data, as: TCPListener.self).close()
        // A long job, which closes its handle when it ends.
        case UV_ASYNC where handle.pointee.data != nil: break
        default: uv_close(handle, nil)
        }
    }
}

extension UnsafeMutablePointer<uv_loop_t> {
    /// The Swift side of a libuv loop.
    var eventLoop: EventLoop { Unmanaged<EventLoop>.fromOpaque(pointee.data).takeUnretainedValue() }
}
