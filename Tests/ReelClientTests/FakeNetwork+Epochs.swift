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
    /// The log is replaced by an empty one; connections break.
    func beginEpoch(_ epoch: Epoch) {
        become(FormerLog(epoch: epoch, number: number + 1, log: [], streams: [], first: 0))
        for connection in connections { connection.end("reset") }
    }

    /// The deployment is lost, and another one made from nothing or from these records, with a log of this number;
    /// connections break.
    func makeAnew(_ deployment: Deployment, number: Int = 0, keeping records: Int = 0) {
        let kept = (Array(log.prefix(records)), Array(streams.prefix(records)))
        become(FormerLog(epoch: Epoch(deployment.value), number: number, log: kept.0, streams: kept.1, first: 0))
        self.deployment = deployment
        for connection in connections { connection.end("reset") }
    }

    /// The log is replaced by one that begins with its state. These nodes do not know of it yet; the connections of all
    /// others break.
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

    /// The nodes that lag go over; their connections break.
    func catchUp() {
        let late = lagging
        lagging = []
        for connection in connections where late.contains(connection.node) { connection.end("reset") }
    }

    /// What the body does with the log it does with the one that this node is at.
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
