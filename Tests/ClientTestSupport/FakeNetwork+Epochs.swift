import ReelCore

/// A log as it was when its epoch ended.
struct FormerLog {
    var epoch: Epoch
    var number: Int
    var log: [[UInt8]]
    var streams: [StreamName?]
    var first: Seq
}

extension FakeNetwork {
    /// Replaces the log with an empty one, and breaks the connections.
    func beginEpoch(_ epoch: Epoch) {
        become(FormerLog(epoch: epoch, number: number + 1, log: [], streams: [], first: 0))
        for connection in connections { connection.end("reset") }
    }

    /// Replaces the deployment with another one, and breaks the connections. The new log has this number and only the
    /// first `records` records.
    func makeAnew(_ deployment: Deployment, number: Int = 0, keeping records: Int = 0) {
        let kept = (Array(log.prefix(records)), Array(streams.prefix(records)))
        become(FormerLog(epoch: Epoch(deployment.value), number: number, log: kept.0, streams: kept.1, first: 0))
        self.deployment = deployment
        for connection in connections { connection.end("reset") }
    }

    /// Replaces the log with one that begins with its state. The lagging nodes stay at the former log. The connections
    /// of all other nodes break.
    func goOver(to epoch: Epoch, lagging: Set<String>) {
        let (before, names) = (current, Set(streams.compactMap(\.self)))
        let folds = names.map { fold($0) }
        become(FormerLog(epoch: epoch, number: number + 1, log: [], streams: [], first: 0))
        for fold in folds {
            fold.forEachSeed { _, value in append(fold.stream, value) }
        }
        first = Seq(log.count)
        append(nil, Barrier.open.value)
        former = before
        self.lagging = lagging
        for connection in connections where !lagging.contains(connection.node) { connection.end("reset") }
    }

    /// Moves the lagging nodes to the new log, and breaks their connections.
    func catchUp() {
        let late = lagging
        lagging = []
        for connection in connections where late.contains(connection.node) { connection.end("reset") }
    }

    /// Runs the body with the log that this node is at.
    func asSeen<T>(by node: String, _ body: () -> T) -> T {
        guard lagging.contains(node), let former else { return body() }
        let present = current
        become(former)
        defer { become(present) }
        return body()
    }

    private var current: FormerLog {
        FormerLog(epoch: epoch, number: number, log: log, streams: streams, first: first)
    }

    private func become(_ log: FormerLog) {
        (epoch, number, self.log, streams, first) = (log.epoch, log.number, log.log, log.streams, log.first)
    }
}
