import Synchronization

/// A bound on the answers that are under way at once, on all loops: each may hold a fold while it is made, and what was
/// spooled as long as its clients read. One from memory that many share counts once.
final class OpenAnswers: Sendable {
    private let most: Int
    private let open = Atomic<Int>(0)

    init(most: Int) {
        self.most = most
    }

    /// A place for an answer, given back with the last reference to it; nil: too many are under way.
    func take() -> Place? {
        guard open.add(1, ordering: .relaxed).newValue <= most else {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }

    /// One answer under way.
    final class Place: Sendable {
        private let answers: OpenAnswers

        fileprivate init(_ answers: OpenAnswers) {
            self.answers = answers
        }

        deinit {
            answers.open.subtract(1, ordering: .relaxed)
        }
    }
}
