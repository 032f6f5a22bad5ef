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
        let request = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
        request.pointee.data = Context.pass(job)
        uv_queue_work(
            handle,
            request,
            { Context.borrow($0!.pointee.data, as: OffloadJob.self).work() },
            { request, status in
                let job = Context.take(request!.pointee.data, as: OffloadJob.self)
                request!.deallocate()
                if status == 0 { job.then() }
            }
        )
    }
}

private final class OffloadResult<T> {
    var value: T?
}

/// `work` runs on a pool thread, `then` on the loop behind it.
private final class OffloadJob {
    let work: @Sendable () -> Void
    let then: () -> Void

    init(work: @escaping @Sendable () -> Void, then: @escaping () -> Void) {
        self.work = work
        self.then = then
    }
}
