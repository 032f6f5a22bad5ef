internal import ReelCore
internal import Synchronization

/// An event that was enqueued without waiting. The handle does not hold the client.
public final class EnqueuedEvent: Sendable {
    /// The maximum number of events of a client that are enqueued and not stored.
    public static let unstoredMax = 100_000

    private struct Waiter {
        var number: Int
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var result: Result<PublishHandle, ReelError>?
        var waiters: [Waiter] = []
        var waits = 0
    }

    /// The event.
    public let event: SyncEvent

    private let state = Mutex(State())

    init(_ event: SyncEvent) {
        self.event = event
    }

    /// Waits until the event is durable on this device: from then on it survives the end of the process.
    ///
    /// - Returns: A handle by which the seq and the outcome of the event can be awaited.
    /// - Throws: What `publish` throws for the event. `closed` if the client has ended before the event was stored.
    ///   `CancellationError` if the task is cancelled; the event is stored nevertheless.
    @discardableResult
    public func stored() async throws -> PublishHandle {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.result != nil || Task.isCancelled { return true }
                    state.waiters.append(Waiter(number: number, continuation: continuation))
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }

    /// Called once, when the event is stored or can no longer be stored.
    func finish(_ result: Result<PublishHandle, ReelError>) {
        let waiters = state.withLock { state in
            state.result = result
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume() }
    }
}
