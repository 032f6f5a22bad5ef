/// A FIFO of tasks of which a loop runs at most 16 per round, so that a burst does not delay other work. Tasks that
/// return false do not count. On its loop only.
final class FairQueue {
    /// The maximum number of tasks per round.
    private static let tasksPerRound = 16

    private let loop: any HostLoop
    private var waiting = Queue<() -> Bool>()
    private var isUnderWay = false

    init(on loop: any HostLoop) {
        self.loop = loop
    }

    /// Adds a task, which runs in its turn, later. It returns false if there was nothing to do.
    func add(_ body: @escaping () -> Bool) {
        waiting.append(body)
        schedule()
    }

    private func schedule() {
        guard !isUnderWay, !waiting.isEmpty else { return }
        isUnderWay = true
        loop.bound { [self] in
            isUnderWay = false
            var left = Self.tasksPerRound
            while left > 0, let body = waiting.popFirst() {
                if body() { left -= 1 }
            }
            schedule()
        }(())
    }
}
