/// A FIFO of tasks of which a loop runs a bounded part per round, so that a burst does not delay other work. On its
/// loop only.
final class FairQueue {
    /// The work of a task, for the limit of a round.
    enum Cost: Int {
        /// There was nothing to do.
        case nothing = 0
        /// A task of about ten microseconds.
        case small = 1
        /// A task that takes longer, such as a large piece of old events.
        case large = 16
        /// A piece for which a filter may have read many events.
        case filtered = 64

        /// The cost of a piece of events.
        init(bytes: Int, isFiltered: Bool) {
            self = isFiltered ? .filtered : bytes > Self.smallBytes ? .large : .small
        }

        private static let smallBytes = 4 << 10
    }

    /// The maximum cost of the tasks of a round: 16 large ones.
    private static let costMax = 16 * Cost.large.rawValue

    private let loop: any HostLoop
    private var waiting = Deque<() -> Cost>()
    private var isUnderWay = false

    init(on loop: any HostLoop) {
        self.loop = loop
    }

    /// Adds a task, which runs in its turn, later. It returns its cost.
    func add(_ body: @escaping () -> Cost) {
        waiting.append(body)
        schedule()
    }

    private func schedule() {
        guard !isUnderWay, !waiting.isEmpty else { return }
        isUnderWay = true
        loop.schedule { [self] in
            isUnderWay = false
            var left = Self.costMax
            while left > 0, let body = waiting.popFirst() { left -= body().rawValue }
            schedule()
        }
    }
}
