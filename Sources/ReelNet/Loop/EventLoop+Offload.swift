import CLibuv

extension EventLoop {
    /// Runs blocking work (a file, a database) on a thread of the process's small pool, then gives the result to the
    /// loop. On the loop. A loop that stops waits for it; `then` may find its connections closed.
    public func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        checkIsolated()
        let result = Handover(value: OffloadResult<T>())
        let job = OffloadJob(
            work: { result.value.value = work() },
            then: { if let value = result.value.value { then(value) } }
        )
        offloads.add(job)
        startOffloads()
    }

    private func startOffloads() {
        while let job = offloads.next() {
            let request = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
            request.pointee.data = Context.pass(job)
            uv_queue_work(
                handle,
                request,
                { Context.borrow($0!.pointee.data, as: OffloadJob.self).work() },
                { request, status in
                    let loop = request!.pointee.loop.eventLoop
                    let job = Context.take(request!.pointee.data, as: OffloadJob.self)
                    request!.deallocate()
                    loop.offloads.ended()
                    loop.startOffloads()
                    if status == 0 { job.then() }
                }
            )
        }
    }
}

/// The blocking work of one loop, in order. A few pieces are under way, enough for the pool's threads: so what they
/// have done comes back a few at a time, and a crowd that waits for the disk does not keep others from the loop.
struct OffloadQueue {
    private static let underWayMax = 8

    private var underWay = 0
    private var first: OffloadJob?
    private var last: OffloadJob?

    fileprivate mutating func add(_ job: OffloadJob) {
        if let last { last.next = job } else { first = job }
        last = job
    }

    /// The job that is to begin now; nil: none is.
    fileprivate mutating func next() -> OffloadJob? {
        guard underWay < Self.underWayMax, let job = first else { return nil }
        underWay += 1
        first = job.next
        if first == nil { last = nil }
        job.next = nil
        return job
    }

    fileprivate mutating func ended() {
        underWay -= 1
    }
}

private final class OffloadResult<T> {
    var value: T?
}

/// `work` runs on a pool thread, `then` on the loop behind it.
private final class OffloadJob {
    let work: @Sendable () -> Void
    let then: () -> Void
    /// The one that was given behind it.
    var next: OffloadJob?

    init(work: @escaping @Sendable () -> Void, then: @escaping () -> Void) {
        self.work = work
        self.then = then
    }
}
