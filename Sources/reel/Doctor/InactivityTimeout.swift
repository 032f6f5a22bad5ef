import ReelLog

private enum Word<Answer: Sendable> {
    case life, late
    case last(Answer)
}

/// What blocking work comes to; nil, and it is left behind, once it is silent for so long: when `silence` returns. That
/// begins anew, the one before cancelled, at each sign of life, for each of which the work calls `heard`.
func withInactivityTimeout<Answer: Sendable>(
    silence: @escaping @Sendable () async throws -> Void,
    of work: @escaping @Sendable (_ heard: () -> Void) -> Answer
) async throws(LogError) -> Answer? {
    let (words, speaker) = AsyncStream.makeStream(of: Word<Answer>.self)
    // A thread of its own: where there is one core, the work would keep the only one that tasks have.
    try LogThread.detach("doctor-log") { speaker.yield(.last(work { speaker.yield(.life) })) }
    func clock() -> Task<Void, any Error> {
        Task {
            try await silence()
            speaker.yield(.late)
        }
    }
    var late = clock()
    defer { late.cancel() }
    for await word in words {
        switch word {
        case .late: return nil
        case .last(let answer): return answer
        case .life:
            late.cancel()
            late = clock()
        }
    }
    return nil
}
