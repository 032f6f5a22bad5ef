internal import Dispatch

/// A serial executor on a queue of Dispatch. Its properties do not change.
final class QueueExecutor: SerialExecutor, @unchecked Sendable {
    let queue = DispatchQueue(label: "org.reel.transport")
    private let key = DispatchSpecificKey<ObjectIdentifier>()

    init() { queue.setSpecific(key: key, value: ObjectIdentifier(self)) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }

    /// Calls the body on the queue; at once if the caller is on the queue. From any thread.
    func execute(_ body: @escaping @Sendable () -> Void) {
        if DispatchQueue.getSpecific(key: key) == ObjectIdentifier(self) { body() } else { queue.async(execute: body) }
    }

    /// Calls the body on the queue after everything that is in the queue now. From any thread.
    func later(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    /// The time since the start of the device in milliseconds, without the time in which it slept.
    static var nowMs: Int64 { Int64(clamping: DispatchTime.now().uptimeNanoseconds / 1_000_000) }
}
