extension EventLoop {
    /// Runs `body` once on the loop, in a later round, after the bodies that were added before it. On the loop.
    ///
    /// All bodies together take `BacklogQueue.time` of a round, or the time of one body. So any number of connections
    /// with a backlog of input delays the other connections of the loop no longer than one of them does.
    func runInBacklog(_ body: @escaping () -> Void) {
        backlog.add(body)
        runBacklogLater()
    }

    private func runBacklogLater() {
        guard !backlog.isScheduled, backlog.count > 0 else { return }
        backlog.isScheduled = true
        let bound = LoopBound(self, on: self)
        execute {
            let loop = bound.value
            let end = ContinuousClock.now + BacklogQueue.time
            // A body that adds itself again has its next turn after the others.
            repeat { loop.backlog.takeFirst()?() } while loop.backlog.count > 0 && ContinuousClock.now < end
            loop.backlog.isScheduled = false
            loop.runBacklogLater()
        }
    }
}

/// A FIFO of the bodies that wait for a share of a loop's time.
struct BacklogQueue {
    /// The time that the bodies may take together in one round.
    static let time = Duration.microseconds(200)

    private var bodies: [(() -> Void)?] = []
    private var first = 0
    /// True while a job of the loop is scheduled that runs bodies.
    var isScheduled = false

    /// The number of bodies that wait.
    var count: Int { bodies.count - first }

    mutating func add(_ body: @escaping () -> Void) { bodies.append(body) }

    /// Removes the body that has waited longest and returns it. Returns nil if no body waits.
    mutating func takeFirst() -> (() -> Void)? {
        guard count > 0 else { return nil }
        let body = bodies[first].take()
        first += 1
        if first == bodies.count || first == 1_024 {
            bodies.removeSubrange(..<first)
            first = 0
        }
        return body
    }

    mutating func removeAll() { self = BacklogQueue() }
}
