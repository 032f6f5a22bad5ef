public import ReelCore
internal import Synchronization

/// An event that was handed to the client. It is in the device's queue, and its outcome can be awaited.
public final class PublishHandle: Sendable {
    private struct State {
        var seq: Seq?
        var outcome: PublishOutcome?
        /// The reason why this object will learn nothing more.
        var end: ReelError?
        var waiters: [Waiter] = []
        var waits = 0
    }

    private struct Waiter {
        var number: Int
        var needsOutcome: Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    /// The event that was published.
    public let event: SyncEvent

    private let state = Mutex(State())

    init(_ event: SyncEvent) {
        self.event = event
    }

    /// Waits until the event is durable in the log, and returns its seq. A durable event need not be applied: see
    /// `outcome`.
    ///
    /// - Returns: The seq of the event. Nil if there is no seq to report: a later event of the queue has replaced this
    ///   one, or a snapshot shows it as consumed together with a later event of this device.
    /// - Throws: The error of an event that was refused for good, or whose outcome is unknown. `closed` if the stream
    ///   or the client ends first; the event stays in the queue. `CancellationError` if the task is cancelled.
    @discardableResult
    public func acked() async throws -> Seq? {
        await wait(needsOutcome: false)
        let (seq, outcome, end) = state.withLock { ($0.seq, $0.outcome, $0.end) }
        if let seq { return seq }
        switch outcome {
        case .applied(let seq), .rejected(_, let seq): return seq
        case .failed(let error), .unknown(let error): throw error
        case .consumed(let seq): return seq
        case .superseded: return nil
        case nil: throw Self.reason(end)
        }
    }

    /// Waits until the device's own fold has processed the event, and returns its outcome.
    ///
    /// - Throws: `closed` if the stream or the client ends first; the event stays in the queue. `CancellationError` if
    ///   the task is cancelled.
    @discardableResult
    public func outcome() async throws -> PublishOutcome {
        await wait(needsOutcome: true)
        let (outcome, end) = state.withLock { ($0.outcome, $0.end) }
        guard let outcome else { throw Self.reason(end) }
        return outcome
    }

    /// Returns the error of a wait that ended early, because the task was cancelled or the client ended.
    private static func reason(_ end: ReelError?) -> any Error {
        if !Task.isCancelled, let end { return end }
        return CancellationError()
    }

    /// Returns once the result is known, once it can no longer become known, or when the task is cancelled.
    private func wait(needsOutcome: Bool) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    let isOver =
                        state.end != nil || state.outcome != nil || !needsOutcome && state.seq != nil
                        || Task.isCancelled
                    if !isOver {
                        state.waiters.append(
                            Waiter(number: number, needsOutcome: needsOutcome, continuation: continuation)
                        )
                    }
                    return isOver
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }

    func acked(_ seq: Seq) { change { $0.seq = seq } }
    func settled(_ outcome: PublishOutcome) { change { $0.outcome = outcome } }
    func closed(_ error: ReelError) { change { $0.end = error } }

    private func change(_ body: (inout State) -> Void) {
        let ready = state.withLock { state in
            body(&state)
            let isOver = state.end != nil || state.outcome != nil
            let ready = state.waiters.filter { isOver || !$0.needsOutcome }
            state.waiters.removeAll { isOver || !$0.needsOutcome }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }
}

extension PublishHandle: CustomStringConvertible {
    /// The event as JSON, and its outcome as it is known now: `waits`, `acked(12)`, or a `PublishOutcome`.
    public var description: String {
        let (seq, outcome) = state.withLock { ($0.seq, $0.outcome) }
        let progress = outcome.map { "\($0)" } ?? seq.map { "acked(\($0))" } ?? "waits"
        return "\(event) \(progress)"
    }
}
