internal import Foundation
internal import ReelClient

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A WebSocket to a node: it does what its `SocketState` decides. Used on the queue only.
final class SocketCall: TransportConnection, @unchecked Sendable {
    private let executor: QueueExecutor
    private let timers: DelayedCall.Timers
    private var state: SocketState
    private var receive: (@Sendable (TransportEvent) -> Void)?
    private var task: (any SocketTask)?
    private var timer: DelayedCall?

    init(
        _ executor: QueueExecutor,
        _ timers: DelayedCall.Timers,
        _ limits: TransportLimits,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) {
        (self.executor, self.timers, self.receive) = (executor, timers, receive)
        state = SocketState(limits)
    }

    func start(_ task: any SocketTask, openMs: Int64) {
        self.task = task
        startTimer(openMs)
        task.resume()
    }

    func send(_ text: [UInt8]) {
        handle(.send(text.count)) { socket in
            socket.task?.send(String(decoding: text, as: UTF8.self)) { error in
                socket.later { $0.handle(error.map { .failed(SessionError.text($0)) } ?? .sent(text.count)) }
            }
        }
    }

    func ping(_ number: Int) {
        handle(.ping) { socket in
            socket.task?.ping { error in
                socket.later { $0.handle(error.map { .readFailed(SessionError.text($0)) } ?? .pong(number)) }
            }
        }
    }

    func close() {
        receive = nil
        handle(.close)
    }

    /// Does what follows from an event. `send` sends what the owner has given.
    func handle(_ input: SocketState.Input, send: (SocketCall) -> Void = { _ in }) {
        for output in state.handle(input) {
            switch output {
            case .report(let event): receive?(event)
            case .end(let reason): end(reason)
            case .read: read()
            case .send: send(self)
            case .startTimer(let ms): startTimer(ms)
            case .stopTimer: startTimer(nil)
            case .close(let code, let reason): close(code, reason)
            }
        }
    }

    /// One message is read at a time, so that a node cannot fill the memory of a busy device.
    private func read() {
        task?.receive { [self] result in
            switch result {
            case .success(.string(let text)): later { $0.handle(.text(text)) }
            case .success: later { $0.handle(.binary) }
            case .failure(let error): later { $0.handle(.readFailed(SessionError.text(error))) }
            }
        }
    }

    private func later(_ body: @escaping @Sendable (SocketCall) -> Void) { executor.execute { body(self) } }

    private func startTimer(_ ms: Int64?) {
        timer?.cancel()
        timer = ms.map { DelayedCall(after: $0, on: executor, in: timers) { self.handle(.deadline) } }
    }

    private func close(_ code: Int, _ reason: String) {
        let task = task
        self.task = nil
        task?.cancel(code, reason)
    }

    private func end(_ reason: String) {
        let receive = receive
        (self.receive, task) = (nil, nil)
        receive?(.closed(reason))
    }
}
