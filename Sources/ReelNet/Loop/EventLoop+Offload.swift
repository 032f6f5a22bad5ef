import CLibuv
import CLinux

extension EventLoop {
    /// Runs blocking work (a file, a database) on a thread of libuv's small pool, then passes the result to the loop.
    /// On the loop.
    ///
    /// A loop that stops waits for the work; `then` may find its connections closed.
    ///
    /// - Parameters:
    ///   - work: Runs on a thread of the pool.
    ///   - then: Called on the loop with the result.
    public func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        offload(isLong: false, work, then: then)
    }

    /// Runs blocking work as `offload` does, and runs long work on the threads of `LowPriorityPool`. Long work may take
    /// many times as long as other work; it occupies no thread of libuv's pool. On the loop.
    ///
    /// - Parameters:
    ///   - isLong: True for long work.
    ///   - work: Runs on a thread of the pool.
    ///   - then: Called on the loop with the result.
    public func offload<T: Sendable>(
        isLong: Bool,
        _ work: @escaping @Sendable () -> T,
        then: @escaping (T) -> Void
    ) {
        checkIsolated()
        let result = UncheckedTransfer(value: OffloadResult<T>())
        let job = OffloadJob(
            isLong: isLong && LowPriorityPool.isPossible,
            work: { result.value.value = work() },
            then: { if let value = result.value.value { then(value) } }
        )
        offloads.add(job)
        startOffloads()
    }

    private func startOffloads() {
        while let job = offloads.next() {
            if job.isLong { startLong(job) } else { start(job) }
        }
    }

    private func ended(_ job: OffloadJob) {
        offloads.ended(job)
        startOffloads()
        job.then()
    }

    private func start(_ job: OffloadJob) {
        let request = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
        request.pointee.data = Context.pass(job)
        uv_queue_work(
            handle,
            request,
            {
                // Without this the thread has the name of the loop from which libuv has started it.
                _ = reel_name_thread("reel-pool")
                Context.borrow($0!.pointee.data, as: OffloadJob.self).work()
            },
            { request, _ in
                let loop = request!.pointee.loop.eventLoop
                let job = Context.take(request!.pointee.data, as: OffloadJob.self)
                request!.deallocate()
                loop.ended(job)
            }
        )
    }

    /// Starts a long job. Each job has an async handle, which keeps the loop alive until the job has ended, as a
    /// request to libuv's pool does.
    private func startLong(_ job: OffloadJob) {
        let endSignal = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
        let status = uv_async_init(handle, endSignal) { signal in
            let loop = signal!.pointee.loop.eventLoop
            let job = Context.take(signal!.pointee.data, as: OffloadJob.self)
            uv_close(base(signal!)) {
                UnsafeMutableRawPointer($0!).assumingMemoryBound(to: uv_async_t.self).deallocate()
            }
            loop.ended(job)
        }
        guard status == 0 else {
            endSignal.deallocate()
            return start(job)
        }
        endSignal.pointee.data = Context.pass(job)
        let transfer = UncheckedTransfer(value: endSignal)
        LowPriorityPool.run(job.work) { uv_async_send(transfer.value) }
    }
}

/// A FIFO of the blocking work of one loop. Only a few jobs run at a time. So their results return a few at a time, and
/// a burst of disk reads does not delay other work of the loop. Long work and other work have threads of their own and
/// do not wait for each other.
struct OffloadQueue {
    private var short = OffloadLine(underWayMax: 8)
    private var long = OffloadLine(underWayMax: 4)

    fileprivate mutating func add(_ job: OffloadJob) {
        if job.isLong { long.add(job) } else { short.add(job) }
    }

    /// Returns the job that has to begin now; nil if there is none.
    fileprivate mutating func next() -> OffloadJob? { short.begin() ?? long.begin() }

    fileprivate mutating func ended(_ job: OffloadJob) {
        if job.isLong { long.underWay -= 1 } else { short.underWay -= 1 }
    }
}

/// A FIFO of waiting jobs of one kind.
private struct OffloadLine {
    let underWayMax: Int
    var underWay = 0
    private var first: OffloadJob?
    private var last: OffloadJob?

    init(underWayMax: Int) {
        self.underWayMax = underWayMax
    }

    mutating func add(_ job: OffloadJob) {
        if let last { last.next = job } else { first = job }
        last = job
    }

    /// Removes the next job and counts it as running. Returns nil if `underWayMax` jobs run, or if no job waits.
    mutating func begin() -> OffloadJob? {
        guard underWay < underWayMax, let job = first else { return nil }
        underWay += 1
        first = job.next
        if first == nil { last = nil }
        job.next = nil
        return job
    }
}

private final class OffloadResult<T> {
    var value: T?
}

/// A piece of blocking work: `work` runs on a thread where it may block, then `then` runs on the loop.
private final class OffloadJob {
    let isLong: Bool
    let work: @Sendable () -> Void
    let then: () -> Void
    /// The job of the same kind that was added after this job.
    var next: OffloadJob?

    init(isLong: Bool, work: @escaping @Sendable () -> Void, then: @escaping () -> Void) {
        self.isLong = isLong
        self.work = work
        self.then = then
    }
}
