import CLibuv
import CLinux

extension EventLoop {
    /// Runs blocking work (a file, a database) on a thread of the process's small pool, then gives the result to the
    /// loop. On the loop. A loop that stops waits for it; `then` may find its connections closed.
    public func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        offload(isLong: false, work, then: then)
    }

    /// The same for work that may take many times as long as what others wait for: it is done where it takes no core
    /// from them, and some of the loop's places stay free of it.
    public func offload<T: Sendable>(
        isLong: Bool,
        _ work: @escaping @Sendable () -> T,
        then: @escaping (T) -> Void
    ) {
        checkIsolated()
        let result = Handover(value: OffloadResult<T>())
        let job = OffloadJob(
            isLong: isLong,
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
                {
                    let job = Context.borrow($0!.pointee.data, as: OffloadJob.self)
                    // It has the name of the loop that libuv has started it from.
                    _ = reel_name_thread("reel-pool")
                    if job.isLong { LongWork.run(job.work) } else { job.work() }
                },
                { request, status in
                    let loop = request!.pointee.loop.eventLoop
                    let job = Context.take(request!.pointee.data, as: OffloadJob.self)
                    request!.deallocate()
                    loop.offloads.ended(job)
                    loop.startOffloads()
                    if status == 0 { job.then() }
                }
            )
        }
    }
}

/// The blocking work of one loop, in order. A few pieces are under way, enough for the pool's threads: so what they
/// have done comes back a few at a time, and a crowd that waits for the disk does not keep others from the loop. Of
/// long work only half as many: what stands behind it and is short goes past.
struct OffloadQueue {
    private static let underWayMax = 8
    private static let longUnderWayMax = 4

    private var underWay = 0
    private var longUnderWay = 0
    private var short = OffloadLine()
    private var long = OffloadLine()
    private var count = 0

    fileprivate mutating func add(_ job: OffloadJob) {
        count += 1
        job.number = count
        if job.isLong { long.add(job) } else { short.add(job) }
    }

    /// The job that is to begin now; nil: none is.
    fileprivate mutating func next() -> OffloadJob? {
        guard underWay < Self.underWayMax else { return nil }
        let mayBeLong = longUnderWay < Self.longUnderWayMax
        let isLongFirst = (long.first?.number ?? .max) < (short.first?.number ?? .max)
        guard let job = mayBeLong && isLongFirst ? long.popFirst() : short.popFirst() else { return nil }
        underWay += 1
        if job.isLong { longUnderWay += 1 }
        return job
    }

    fileprivate mutating func ended(_ job: OffloadJob) {
        underWay -= 1
        if job.isLong { longUnderWay -= 1 }
    }
}

/// Jobs that wait, in order.
private struct OffloadLine {
    private(set) var first: OffloadJob?
    private var last: OffloadJob?

    mutating func add(_ job: OffloadJob) {
        if let last { last.next = job } else { first = job }
        last = job
    }

    mutating func popFirst() -> OffloadJob? {
        guard let job = first else { return nil }
        first = job.next
        if first == nil { last = nil }
        job.next = nil
        return job
    }
}

private final class OffloadResult<T> {
    var value: T?
}

/// `work` runs on a pool thread, `then` on the loop behind it.
private final class OffloadJob {
    let isLong: Bool
    let work: @Sendable () -> Void
    let then: () -> Void
    /// Which of all that were given.
    var number = 0
    /// The one of its kind that was given behind it.
    var next: OffloadJob?

    init(isLong: Bool, work: @escaping @Sendable () -> Void, then: @escaping () -> Void) {
        self.isLong = isLong
        self.work = work
        self.then = then
    }
}
