import ReelNet
import Synchronization

/// Work whose answer is the same for all who ask the same question at the same time. It is done once for all who have
/// asked before it begins; who asks while it is being done waits for the next time. So nobody is told what was true
/// before they asked, and a crowd costs as much as one after the other.
final class SharedWork<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    private typealias Asker = LoopBound<(Answer) -> Bool>

    /// Of what is under way, who waits for a time that has not begun.
    private let waiting = Mutex<[Question: [Asker]]>([:])

    /// Shares work that is under way, or begins it: on a thread where it may block, for it may be long. `begin` says
    /// what the work is, nil if no more may be begun now: then the answer is false, and `then` is not called; else that
    /// is called on the loop, paced, and tells whether the answer was still wanted. On the loop.
    func ask(
        _ question: Question,
        on loop: EventLoop,
        begin work: () -> (@Sendable () -> Answer)?,
        then: @escaping (Answer) -> Bool
    ) -> Bool {
        let asker = LoopBound(then, on: loop)
        let begun: (@Sendable () -> Answer)?
        let isUnderWay: Bool
        (begun, isUnderWay) = waiting.withLock { waiting in
            if waiting[question] != nil {
                waiting[question]?.append(asker)
                return (nil, true)
            }
            let begun = work()
            if begun != nil { waiting[question] = [asker] }
            return (begun, false)
        }
        if let begun { begin(question, on: loop, begun) }
        return isUnderWay || begun != nil
    }

    private func begin(_ question: Question, on loop: EventLoop, _ work: @escaping @Sendable () -> Answer) {
        loop.offload(isLong: true) { [self] in
            let askers = waiting.withLock { waiting in
                defer { waiting[question] = [] }
                return waiting[question] ?? []
            }
            return (askers, work())
        } then: { [self] askers, answer in
            let isOver = waiting.withLock { waiting in
                guard waiting[question]?.isEmpty == true else { return false }
                waiting[question] = nil
                return true
            }
            if !isOver { begin(question, on: loop, work) }
            for asker in askers { asker.loop.execute { asker.loop.paced { asker.value(answer) } } }
        }
    }
}
