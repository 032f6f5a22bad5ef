import CLibuv
import CLinux
import Glibc
import Synchronization

/// A thread that waits for sockets, timers and jobs from other threads, on libuv.
///
/// All objects that belong to a loop (connections, servers, timers) are made and used on its thread and are not
/// `Sendable`. `LoopBound` carries a reference to such an object through other threads. Work reaches the loop by
/// `execute`, `run` or `sync`. A loop is also a serial executor: an actor can be pinned to it.
///
/// A loop changes nothing of its process: no environment variable, no signal handler. A program with much blocking work
/// sets `UV_THREADPOOL_SIZE` before it starts its first loop.
///
/// One round of the loop has these steps:
/// 1. Wait.
/// 2. Call the callbacks of the events. The bytes that a connection's handler writes during a read are offered here.
/// 3. Run the bodies of `beforeFlush`.
/// 4. Offer the collected bytes of the other connections to the kernel: one write per connection and round.
/// 5. Run the bodies of `afterFlush`, which write to many connections directly.
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
    /// The packer of WebSocket messages. It is made when the first message is packed; nil if there is no memory for it.
    lazy var deflater = MessageDeflater()
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    let writeBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    /// The buffer for the bytes that TLS opens: all of a full `readBuffer` and the record that it may complete.
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
    /// The number of calls of `send` since the start.
    var writes = 0
    /// The bodies of `throttled`; those from `nextThrottled` on still wait.
    private var throttledBodies: [(() -> Bool)?] = []
    private var nextThrottled = 0
    /// The timer of the throttled bodies. It runs until a tick finds no body. So a body that is added just after the
    /// last one does not run earlier than the interval allows.
    private var pace: LoopTimer?
    var offloads = OffloadQueue()
    var backlog = BacklogQueue()
    private(set) lazy var wheel = DeadlineWheel(loop: self)
    let date = HTTPDate()
    /// The guard that blocks SIGPIPE while libuv writes to a connection.
    var brokenPipes = BrokenPipeGuard()

    /// Starts the thread, which runs until `stop`.
    ///
    /// - Throws: A `NetError` if the process has no descriptor or no thread left.
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

    /// The time between two throttled bodies.
    private static let throttleInterval = Duration.milliseconds(2)
    /// The number of waiting bodies above which several run per interval, so that all have run within a second or two.
    private static let throttledMax = 250

    /// Throws if the process has too few descriptors. The first loop makes the pipe of libuv's signals, and libuv
    /// aborts the process if it gets no descriptors for it.
    private static func checkDescriptors() throws(NetError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw NetError(status: -errno, "starting an event loop") }
        for end in ends { Glibc.close(end) }
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        let loop = Context.take(context, as: EventLoop.self)
        _ = reel_name_thread("reel-loop")
        uv_run(loop.handle, UV_RUN_DEFAULT)
        // The last callbacks may have made new handles; these are closed too.
        while uv_loop_alive(loop.handle) != 0 {
            uv_walk(loop.handle, { handle, _ in EventLoop.close(handle!) }, nil)
            uv_run(loop.handle, UV_RUN_ONCE)
        }
        uv_loop_close(loop.handle)
        // These bodies and connections hold references to the loop.
        (loop.throttledBodies, loop.beforeFlushBodies, loop.afterFlushBodies) = ([], [], [])
        loop.unflushed = []
        loop.wheel.removeAll()
        loop.backlog.removeAll()
        return nil
    }

    // MARK: Jobs

    /// True if the caller is on the loop's thread.
    public var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Runs the job on the loop, after all jobs that were given before. Many jobs in a burst cost one wake-up. From any
    /// thread.
    ///
    /// - Returns: False if the loop has stopped; the job is then dropped.
    @discardableResult
    public func execute(_ job: @escaping @Sendable () -> Void) -> Bool {
        add(.closure(job))
    }

    /// Runs `body` on the loop and returns its result. From any thread.
    ///
    /// - Throws: The error of `body`, or `closed` if the loop has stopped.
    public func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let taken = execute { continuation.resume(with: Result { try body() }) }
            if !taken { continuation.resume(throwing: NetError(.closed, "the event loop has stopped")) }
        }
    }

    /// Runs `body` on the loop while the calling thread waits; on the loop itself, `body` runs at once. Meant for the
    /// start and the end of a process.
    ///
    /// - Throws: The error of `body`, or `closed` if the loop has stopped.
    public func sync<T: Sendable>(_ body: @escaping @Sendable () throws -> T) throws -> T {
        if isCurrent { return try body() }
        let answer = BlockingResult<T>()
        guard execute({ answer.give(Result { try body() }) }) else {
            throw NetError(.closed, "the event loop has stopped")
        }
        return try answer.wait()
    }

    /// Runs `body` once at the end of this round, before the collected bytes are written. Meant for work that gathers
    /// the results of a round. On the loop.
    public func beforeFlush(_ body: @escaping () -> Void) {
        beforeFlushBodies.append(body)
    }

    /// Runs `body` once, after this round has written its bytes. Meant for work that writes to many connections. On the
    /// loop.
    public func afterFlush(_ body: @escaping () -> Void) {
        afterFlushBodies.append(body)
    }

    /// Runs `body` once, at a limited rate: one body in two milliseconds, in order, and more if hundreds wait. On the
    /// loop.
    ///
    /// The limit leaves time of the loop and of the machine for urgent work. A body that returns false had nothing to
    /// do and does not count. Bodies that still wait when the loop stops are dropped.
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
        // A connection that was written to during the flush waits for the next round. The wake-up makes that round
        // start at once.
        if !beforeFlushBodies.isEmpty || !unflushed.isEmpty || !afterFlushBodies.isEmpty { uv_async_send(wake) }
    }

    /// The estimated processor time in microseconds that a write to one connection takes on this loop, as a moving
    /// average. On the loop.
    public var writeMicros: Double { writeCost.micros }

    /// Runs `body`, which writes to at most `count` connections. The loop measures the time to learn the cost of a
    /// write. On the loop.
    public func writing(toMost count: Int, _ body: () -> Void) {
        let (begin, before) = (WriteCostEstimate.begin(count), writes)
        body()
        writeCost.end(writes - before, since: begin)
    }

    /// Adds the connection to those that are flushed at the end of the round. On the loop.
    func flushAtRoundEnd(_ connection: TCPConnection) {
        unflushed.append(connection)
    }

    // MARK: Executor

    /// Runs a task of an actor that is pinned to this loop. From any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        // A task that arrives after the loop has stopped cannot run: its actor has outlived its loop.
        _ = add(.task(UnownedJob(job)))
    }

    /// Traps if the caller is not on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the event loop's thread")
    }

    /// True if the caller is on the loop's thread.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    // MARK: End

    /// Closes all handles of the loop and lets its thread end. From any thread; returns at once.
    public func stop() {
        execute { self.closeAll() }
    }

    /// Waits until the thread has ended, after `stop`. On the loop itself, where the last reference of an owner may
    /// end, it does not wait; it detaches the thread.
    public func join() {
        guard beginsToJoin() else { return }
        // Not under the lock: the loop's own thread may call `join` or `leave` before it ends.
        if isCurrent { pthread_detach(thread) } else { pthread_join(thread, nil) }
    }

    /// Detaches the thread, after `stop`. Meant for an owner that ends without waiting.
    public func leave() {
        if beginsToJoin() { pthread_detach(thread) }
    }

    /// Returns true for the first caller of `join` or `leave`.
    private func beginsToJoin() -> Bool {
        joining.withLock { isJoined in
            defer { isJoined = true }
            return !isJoined
        }
    }

    private func closeAll() {
        // Jobs that were added after this one still run, because the loop has accepted them.
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

    /// Closes a handle of any kind that may be on a loop.
    private static func close(_ handle: UnsafeMutablePointer<uv_handle_t>) {
        guard uv_is_closing(handle) == 0 else { return }
        switch handle.pointee.type {
        case UV_TCP: Context.borrow(handle.pointee.data, as: TCPConnection.self).close()
        case UV_TIMER: Context.borrow(handle.pointee.data, as: LoopTimer.self).cancel()
        case UV_SIGNAL: Context.borrow(handle.pointee.data, as: SignalWatch.self).cancel()
        case UV_POLL: Context.borrow(handle.pointee.data, as: TCPListener.self).close()
        // This handle belongs to a long job, which closes it when the job ends.
        case UV_ASYNC where handle.pointee.data != nil: break
        default: uv_close(handle, nil)
        }
    }
}

extension UnsafeMutablePointer<uv_loop_t> {
    /// The `EventLoop` of this libuv loop.
    var eventLoop: EventLoop { Unmanaged<EventLoop>.fromOpaque(pointee.data).takeUnretainedValue() }
}
