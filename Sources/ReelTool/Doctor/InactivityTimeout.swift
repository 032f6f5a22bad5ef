import ReelLog

/// An event of the work or of its timeout.
private enum Signal<Answer: Sendable> {
    /// The work has called `heard`, or the timeout has passed.
    case progress, timeout
    /// The work has returned.
    case result(Answer)
}

/// Runs blocking work on a separate thread, with an inactivity timeout.
///
/// - Parameters:
///   - silence: the timeout: a function that returns when it has passed. Every call of `heard` cancels it and starts it
///     again.
///   - work: the work. It calls `heard` whenever it makes progress.
/// - Returns: the result of the work; nil after a timeout. The thread of the work is then abandoned.
/// - Throws: a `LogError` if the thread cannot be created.
func withInactivityTimeout<Answer: Sendable>(
    silence: @escaping @Sendable () async throws -> Void,
    of work: @escaping @Sendable (_ heard: () -> Void) -> Answer
) async throws(LogError) -> Answer? {
    let (signals, sender) = AsyncStream.makeStream(of: Signal<Answer>.self)
    // A separate thread: on a machine with one core, the work would block the only thread for tasks.
    try LogThread.detach("doctor-log") { sender.yield(.result(work { sender.yield(.progress) })) }
    func startTimer() -> Task<Void, any Error> {
        Task {
            try await silence()
            sender.yield(.timeout)
        }
    }
    var timer = startTimer()
    defer { timer.cancel() }
    for await signal in signals {
        switch signal {
        case .timeout: return nil
        case .result(let answer): return answer
        case .progress:
            timer.cancel()
            timer = startTimer()
        }
    }
    return nil
}
