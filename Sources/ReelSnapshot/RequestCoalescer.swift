import ReelNet
import Synchronization

/// Work whose answer is the same for all who ask the same question at the same time. It is done in rounds: once for all
/// who have asked before a round begins. A question that is asked during a round is answered by the next round, so no
/// answer is older than its question.
final class RequestCoalescer<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    private typealias Asker = LoopBound<(Answer) -> Bool>

    /// A round that has not begun.
    private struct Round {
        let work: @Sendable () -> Answer
        var askers: [Asker]
    }

    /// The next round of each question that has a round under way or waiting for a thread; nil: nobody has asked since
    /// that round began.
    private let rounds = Mutex<[Question: Round?]>([:])

    /// Asks a question. For the first asker of a round, `begin` is called for the round's work, which runs on a thread
    /// where it may block for long. `begin` returns nil if no more may be begun now for this asker. Then the result is
    /// false, and `then` is not called. Otherwise `then` is called on the loop, paced, and returns true if the answer
    /// was still wanted. On the loop.
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

    /// Runs the next round, and those that are asked for meanwhile.
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
