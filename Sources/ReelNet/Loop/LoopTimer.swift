import CLibuv

/// A separate libuv timer, for the few parts of a loop that need one. Connections use a `Deadline`.
public final class LoopTimer {
    private var handle: UnsafeMutablePointer<uv_timer_t>?
    private var body: (() -> Void)?
    private let isRepeating: Bool

    fileprivate init(_ loop: EventLoop, after delay: Duration, every period: Duration?, _ body: @escaping () -> Void) {
        loop.checkIsolated()
        self.body = body
        isRepeating = period != nil
        let handle = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        self.handle = handle
        uv_timer_init(loop.handle, handle)
        handle.pointee.data = Context.pass(self)
        // libuv counts from its cached time, and the round may have begun long ago. So the clock is read first.
        _ = loop.freshNow
        uv_timer_start(
            handle,
            { Context.borrow($0!.pointee.data, as: LoopTimer.self).fire() },
            delay.milliseconds,
            max(period?.milliseconds ?? 0, isRepeating ? 1 : 0)
        )
    }

    private func fire() {
        let body = body
        if !isRepeating { cancel() }
        body?()
    }

    /// Stops the timer for good; it makes no further call. On the loop.
    public func cancel() {
        guard let handle else { return }
        self.handle = nil
        body = nil
        uv_close(base(handle)) {
            _ = Context.take($0!.pointee.data, as: LoopTimer.self)
            UnsafeMutableRawPointer($0!).assumingMemoryBound(to: uv_timer_t.self).deallocate()
        }
    }
}

@available(*, unavailable)
extension LoopTimer: Sendable {}

extension EventLoop {
    /// Calls `body` once after `delay`, then repeatedly if a period is given. On the loop.
    ///
    /// The timer lives until it has fired for the last time or is cancelled, even if the result is discarded.
    ///
    /// - Parameters:
    ///   - delay: The time until the first call.
    ///   - period: The time between further calls; nil for a single call.
    ///   - body: Called on the loop.
    /// - Returns: The timer, to cancel it.
    @discardableResult
    public func timer(
        after delay: Duration,
        every period: Duration? = nil,
        _ body: @escaping () -> Void
    ) -> LoopTimer {
        LoopTimer(self, after: delay, every: period, body)
    }

    /// The loop's monotonic clock in milliseconds, as of the start of this round or later. On the loop.
    public var now: UInt64 { uv_now(handle) }

    /// The same clock, read now: the round may have begun long ago.
    var freshNow: UInt64 {
        uv_update_time(handle)
        return uv_now(handle)
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up; 0 if negative.
    var milliseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let whole = UInt64(seconds).multipliedReportingOverflow(by: 1000)
        return whole.overflow
            ? .max / 4
            : min(whole.partialValue, .max / 4) + UInt64(attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
