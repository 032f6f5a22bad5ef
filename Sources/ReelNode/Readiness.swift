public import ReelCore

/// Whether a node has read to the log's end as of its start. Once ready it stays so until it leaves, or, a gateway, as
/// long as it is too far behind the others.
public struct Readiness: Sendable {
    /// The last seq of each partition when the node started; −1: empty.
    public let goals: [Seq]
    private var reached: [Seq]
    /// For each partition why it is not read any further; nil: it is.
    public private(set) var stops: [String?]
    /// For each partition the seq at which reading went on behind what was trimmed unread; nil: nothing was.
    private var skips: [Seq?]
    /// The node ends.
    public var isLeaving = false
    /// The others have read on for too long without this node.
    public var isBehind = false

    /// A node that starts at a log with these ends.
    public init(goals: [Seq]) {
        self.goals = goals
        reached = [Seq](repeating: .none, count: goals.count)
        stops = [String?](repeating: nil, count: goals.count)
        skips = [Seq?](repeating: nil, count: goals.count)
    }

    /// The node has read a partition up to here.
    public mutating func read(_ partition: Int, to seq: Seq) {
        guard reached.indices.contains(partition) else { return }
        reached[partition] = max(reached[partition], seq)
    }

    /// A partition was trimmed before it was read: it goes on at this seq.
    public mutating func skip(_ partition: Int, to first: Seq) {
        guard skips.indices.contains(partition) else { return }
        skips[partition] = first
        read(partition, to: first - 1)
    }

    /// A partition is not read any further: it holds what this version does not know.
    public mutating func stop(_ partition: Int, _ reason: String) {
        guard stops.indices.contains(partition) else { return }
        stops[partition] = reason
    }

    /// The answer to `/readyz`: whether the node can serve, and where it stands.
    public var isReady: Bool {
        !isLeaving && !isBehind && zip(goals, reached).allSatisfy { $0 <= $1 }
    }

    /// How far each partition has been read.
    public var positions: [Seq] { reached }

    /// The body of `/readyz`; `log` is the log's state, `detail` says more of it.
    public func body(
        log: LogState,
        detail: String? = nil,
        epoch: Epoch,
        deployment: Deployment? = nil
    ) -> [UInt8] {
        var body = JSONObjectWriter()
        body.member("ready", isReady)
        body.member("leaving", isLeaving)
        body.member("behind", isBehind)
        body.member("log", log.rawValue)
        body.member("detail", detail)
        body.member("epoch", epoch.description)
        body.member("deployment", deployment?.description)
        body.objects("partitions", reached.enumerated()) { object, place in
            object.member("partition", place.offset)
            object.member("seq", place.element)
            object.member("goal", goals[place.offset])
            object.member("skipped_to", skips[place.offset])
            object.member("stopped", stops[place.offset])
        }
        return body.finish()
    }
}
