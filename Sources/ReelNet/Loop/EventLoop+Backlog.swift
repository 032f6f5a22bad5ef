extension EventLoop {
    /// Runs the body on the loop once, in a later round, after the bodies that were given before it. All bodies take
    /// `BacklogQueue.time` of a round together, or the time of one body. So any number of connections with a backlog of
    /// input delays the other connections of the loop no longer than one does. On the loop.
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

/// The bodies that wait for a part of a loop's time, in order.
struct BacklogQueue {
    /// The time of one round that the bodies may take together.
    static let time = Duration.microseconds(200)

    private var bodies: [(() -> Void)?] = []
    private var first = 0
    /// True while a job of the loop is to run bodies.
    var isScheduled = false

    /// The number of bodies that wait.
    var count: Int { bodies.count - first }

    mutating func add(_ body: @escaping () -> Void) { bodies.append(body) }

    /// Removes the body that has waited longest and returns it; nil: none waits.
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
