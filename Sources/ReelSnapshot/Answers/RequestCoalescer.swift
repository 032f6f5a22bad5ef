import ReelNet
import Synchronization

/// Coalesces concurrent requests that have the same answer. The work for a question runs in rounds. One round answers
/// all requests that arrived before it began. A request that arrives during a round is answered by the next round, so
/// no answer is older than its request.
final class RequestCoalescer<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    private typealias Asker = LoopBound<(Answer) -> Bool>

    /// A round that has not begun.
    private struct Round {
        let work: @Sendable () -> Answer
        var askers: [Asker]
    }

    /// The next round of each question that has a round running or waiting for a thread; nil: no request has arrived
    /// since that round began.
    private let rounds = Mutex<[Question: Round?]>([:])

    /// Adds a request. On the loop.
    ///
    /// - Parameters:
    ///   - question: The question; equal questions share a round.
    ///   - begin: Called for the first request of a round, under the lock of this object. Returns the work of the
    ///     round, which runs on a thread where it may block for long; nil: the limits permit no further work for this
    ///     request.
    ///   - then: Called on the loop, paced (`EventLoop.throttled`), with the answer. Returns true if the client still
    ///     wanted it.
    /// - Returns: False if `begin` returned nil. Then `then` is not called.
    func ask(
        _ question: Question,
        on loop: EventLoop,
        begin: () -> (@Sendable () -> Answer)?,
        then: @escaping (Answer) -> Bool
    ) -> Bool {
        let asker = LoopBound(then, on: loop)
        let (isTaken, isFirst) = rounds.withLock { rounds in
            let isFirst = rounds[question] == nil
            if rounds[question]??.askers.append(asker) != nil { return (true, false) }
            guard let work = begin() else { return (false, false) }
            rounds[question] = .some(Round(work: work, askers: [asker]))
            return (true, isFirst)
        }
        if isFirst { run(question, on: loop) }
        return isTaken
    }

    /// Runs the next round of a question, and then those that were requested meanwhile.
    private func run(_ question: Question, on loop: EventLoop) {
        loop.offload(isLong: true) { [self] in
            let round = rounds.withLock { $0.updateValue(nil, forKey: question) ?? nil }
            return round.map { ($0.askers, $0.work()) }
        } then: { [self] result in
            let isOver = rounds.withLock { rounds in
                guard let next = rounds[question], next == nil else { return false }
                rounds[question] = nil
                return true
            }
            if !isOver { run(question, on: loop) }
            guard let (askers, answer) = result else { return }
            for asker in askers { asker.loop.execute { asker.loop.throttled { asker.value(answer) } } }
        }
    }
}
