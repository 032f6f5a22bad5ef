import Synchronization

/// A bound on the answers that are under way at once, on all loops: each may hold a fold while it is made, and what was
/// spooled as long as its clients read. One from memory that many share counts once.
final class AnswerTurns: Sendable {
    private let most: Int
    private let open = Atomic<Int>(0)

    init(most: Int) {
        self.most = most
    }

    /// Leave to make an answer, given back with the last reference to it; nil: too many are under way.
    func take() -> Turn? {
        guard open.add(1, ordering: .relaxed).newValue <= most else {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        return Turn(self)
    }

    /// One answer under way.
    final class Turn: Sendable {
        private let turns: AnswerTurns

        fileprivate init(_ turns: AnswerTurns) {
            self.turns = turns
        }

        deinit {
            turns.open.subtract(1, ordering: .relaxed)
        }
    }
}
