import CLibuv
import CLinux

extension EventLoop {
    /// Runs blocking work (a file, a database) on a thread of the process's small pool, then gives the result to the
    /// loop. On the loop. A loop that stops waits for it; `then` may find its connections closed.
    public func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        offload(isLong: false, work, then: then)
    }

    /// Runs blocking work as `offload` does. Work that is long, which may take many times as long as other work, runs
    /// on the threads of `LowPriorityPool` and occupies no thread of the pool.
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
                // It has the name of the loop that libuv has started it from.
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

    /// Each job has an async handle, which keeps the loop alive until the job has ended, as a request to libuv's pool
    /// does.
    private func startLong(_ job: OffloadJob) {
        let bell = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
        let status = uv_async_init(handle, bell) { bell in
            let loop = bell!.pointee.loop.eventLoop
            let job = Context.take(bell!.pointee.data, as: OffloadJob.self)
            uv_close(base(bell!)) { UnsafeMutableRawPointer($0!).assumingMemoryBound(to: uv_async_t.self).deallocate() }
            loop.ended(job)
        }
        guard status == 0 else {
            bell.deallocate()
            return start(job)
        }
        bell.pointee.data = Context.pass(job)
        let ring = UncheckedTransfer(value: bell)
        LowPriorityPool.run(job.work) { uv_async_send(ring.value) }
    }
}

/// The blocking work of one loop, in order. A few jobs are under way: so their results come back a few at a time, and a
/// crowd that waits for the disk does not keep others from the loop. Long work and other work have threads of their own
/// and do not wait for each other.
struct OffloadQueue {
    private var short = OffloadLine(underWayMax: 8)
    private var long = OffloadLine(underWayMax: 4)

    fileprivate mutating func add(_ job: OffloadJob) {
        if job.isLong { long.add(job) } else { short.add(job) }
    }

    /// The job that is to begin now; nil if there is none.
    fileprivate mutating func next() -> OffloadJob? { short.begin() ?? long.begin() }

    fileprivate mutating func ended(_ job: OffloadJob) {
        if job.isLong { long.underWay -= 1 } else { short.underWay -= 1 }
    }
}

/// Jobs of one kind that wait, in order.
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

    /// The next job, which is under way from now on; nil if enough are, or none waits.
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

/// `work` runs on a thread where it may block, `then` on the loop after it.
private final class OffloadJob {
    let isLong: Bool
    let work: @Sendable () -> Void
    let then: () -> Void
    /// The job of the same kind that was added after this one.
    var next: OffloadJob?

    init(isLong: Bool, work: @escaping @Sendable () -> Void, then: @escaping () -> Void) {
        self.isLong = isLong
        self.work = work
        self.then = then
    }
}
