import CLibuv
import Glibc

/// A watch on one signal of the process.
public final class SignalWatch {
    private var handle: UnsafeMutablePointer<uv_signal_t>?
    private var body: (() -> Void)?

    fileprivate init(_ loop: EventLoop, _ signal: Int32, _ body: @escaping () -> Void) {
        loop.checkIsolated()
        self.body = body
        let handle = UnsafeMutablePointer<uv_signal_t>.allocate(capacity: 1)
        self.handle = handle
        uv_signal_init(loop.handle, handle)
        handle.pointee.data = Context.pass(self)
        uv_signal_start(
            handle,
            { handle, _ in Context.borrow(handle!.pointee.data, as: SignalWatch.self).body?() },
            signal
        )
    }

    /// Stops the watch: the signal has its former effect again. On the loop.
    public func cancel() {
        guard let handle else { return }
        self.handle = nil
        body = nil
        uv_close(base(handle)) {
            _ = Context.take($0!.pointee.data, as: SignalWatch.self)
            UnsafeMutableRawPointer($0!).assumingMemoryBound(to: uv_signal_t.self).deallocate()
        }
    }
}

@available(*, unavailable)
extension SignalWatch: Sendable {}

extension EventLoop {
    /// Calls `body` on this loop each time the process gets the signal (`SIGTERM`, `SIGINT`), until the watch is
    /// cancelled. The signal's own effect is suppressed meanwhile. On the loop.
    ///
    /// - Parameters:
    ///   - signal: The number of the signal.
    ///   - body: Called on the loop.
    /// - Returns: The watch, to cancel it.
    @discardableResult
    public func onSignal(_ signal: Int32, _ body: @escaping () -> Void) -> SignalWatch {
        SignalWatch(self, signal, body)
    }

    /// Calls `body` on this loop each time the process is asked to end: by SIGINT, SIGTERM, or SIGHUP (its terminal was
    /// closed). SIGHUP is left out if the process ignored it at the start, as under `nohup`. On the loop.
    public func onInterruption(_ body: @escaping () -> Void) {
        var former = sigaction()
        sigaction(SIGHUP, nil, &former)
        let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
        let outlivesTerminal = unsafeBitCast(former.__sigaction_handler.sa_handler, to: Int.self) == ignored
        for signal in outlivesTerminal ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP] { onSignal(signal, body) }
    }
}
