public import ReelCore

/// Whether a node has read to the log's end as of its start. Once ready it stays so until it leaves.
public struct Readiness: Sendable {
    /// The last seq of each partition when the node started; −1: empty.
    public let goals: [Seq]
    private var reached: [Seq]
    /// For each partition why it is not read any further; nil: it is.
    public private(set) var stops: [String?]
    /// The node ends.
    public var isLeaving = false

    /// A node that starts at a log with these ends.
    public init(goals: [Seq]) {
        self.goals = goals
        reached = [Seq](repeating: .none, count: goals.count)
        stops = [String?](repeating: nil, count: goals.count)
    }

    /// The node has read a partition up to here.
    public mutating func read(_ partition: Int, to seq: Seq) {
        guard reached.indices.contains(partition) else { return }
        reached[partition] = max(reached[partition], seq)
    }

    /// A partition is not read any further: it holds what this version does not know.
    public mutating func stop(_ partition: Int, _ reason: String) {
        guard stops.indices.contains(partition) else { return }
        stops[partition] = reason
    }

    /// The answer to `/readyz`: whether the node can serve, and where it stands.
    public var isReady: Bool {
        !isLeaving && zip(goals, reached).allSatisfy { $0 <= $1 }
    }

    /// How far each partition has been read.
    public var positions: [Seq] { reached }

    /// The body of `/readyz`; `log` is the log's state in a word, `detail` says more of it.
    public func body(log: String, detail: String? = nil, epoch: Epoch) -> [UInt8] {
        var body = JSONObjectWriter()
        body.member("ready", isReady)
        body.member("leaving", isLeaving)
        body.member("log", log)
        body.member("detail", detail)
        body.member("epoch", epoch.description)
        body.objects("partitions", reached.enumerated()) { object, place in
            object.member("partition", place.offset)
            object.member("seq", place.element)
            object.member("goal", goals[place.offset])
            object.member("stopped", stops[place.offset])
        }
        return body.finish()
    }
}
