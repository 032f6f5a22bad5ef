import CLibuv
import Glibc

/// Watches one signal of the process.
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

    /// Stops watching: the signal has its former effect again. On the loop.
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
    /// Calls the body on this loop whenever the process gets the signal (`SIGTERM`, `SIGINT`), in place of the
    /// signal's own effect, until it is cancelled. On the loop.
    @discardableResult
    public func onSignal(_ signal: Int32, _ body: @escaping () -> Void) -> SignalWatch {
        SignalWatch(self, signal, body)
    }

    /// Calls the body on this loop whenever the process is asked to end: by SIGINT or SIGTERM, and as its terminal is
    /// closed (SIGHUP), unless that was ignored at the start, as `nohup` has it. On the loop.
    public func onInterruption(_ body: @escaping () -> Void) {
        var former = sigaction()
        sigaction(SIGHUP, nil, &former)
        let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
        let outlivesTerminal = unsafeBitCast(former.__sigaction_handler.sa_handler, to: Int.self) == ignored
        for signal in outlivesTerminal ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP] { onSignal(signal, body) }
    }
}
