internal import Dispatch
internal import ReelClient

/// A call of a function after a time. Used on the queue only.
final class DelayedCall: TransportHandle, @unchecked Sendable {
    /// A call that is later than this was delayed by a pause of the process.
    private static let lateMs: Int64 = 500
    /// The time that a late call leaves for what has arrived during the pause.
    private static let graceMs: Int64 = 250

    private let executor: QueueExecutor
    private let timers: Timers
    private var body: (@Sendable () -> Void)?
    private var source: (any DispatchSourceTimer)?

    /// The timers that run. Used on the queue only.
    final class Timers: @unchecked Sendable {
        fileprivate var running: [ObjectIdentifier: DelayedCall] = [:]

        func cancel() { for call in Array(running.values) { call.cancel() } }
    }

    /// Starts the timer.
    ///
    /// - Parameters:
    ///   - ms: the time in milliseconds.
    ///   - executor: the executor of the call.
    ///   - timers: the place that keeps the timer until it ends.
    ///   - body: the function.
    init(after ms: Int64, on executor: QueueExecutor, in timers: Timers, _ body: @escaping @Sendable () -> Void) {
        (self.executor, self.timers, self.body) = (executor, timers, body)
        timers.running[ObjectIdentifier(self)] = self
        start(after: ms, mayBeLate: false)
    }

    func cancel() {
        source?.cancel()
        (source, body) = (nil, nil)
        timers.running[ObjectIdentifier(self)] = nil
    }

    private func start(after ms: Int64, mayBeLate: Bool) {
        // No sum of a time and this maximum overflows.
        let ms = min(max(0, ms), 1 << 40)
        let dueMs = QueueExecutor.nowMs + ms
        let source = DispatchSource.makeTimerSource(queue: executor.queue)
        source.schedule(deadline: .now() + .milliseconds(Int(ms)), leeway: .milliseconds(1))
        source.setEventHandler { [unowned self] in
            self.source?.cancel()
            if !mayBeLate, QueueExecutor.nowMs - dueMs > Self.lateMs {
                start(after: Self.graceMs, mayBeLate: true)
            } else {
                // Data that is in the queue already is handed over first.
                executor.later { self.fire() }
            }
        }
        self.source = source
        source.resume()
    }

    private func fire() {
        let body = body
        cancel()
        body?()
    }
}
