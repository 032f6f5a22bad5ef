public import ReelCore

/// Whether a node has read to the log's end as of its start. Once ready it stays so until it leaves.
public struct Readiness: Sendable {
    /// The last seq of each partition when the node started; −1: empty.
    private let goals: [Seq]
    private var reached: [Seq]
    /// The node ends.
    public var isLeaving = false

    /// A node that starts at a log with these ends.
    public init(goals: [Seq]) {
        self.goals = goals
        reached = [Seq](repeating: .none, count: goals.count)
    }

    /// The node has read a partition up to here.
    public mutating func read(_ partition: Int, to seq: Seq) {
        guard reached.indices.contains(partition) else { return }
        reached[partition] = max(reached[partition], seq)
    }

    /// The answer to `/readyz`: whether the node can serve, and where it stands.
    public var isReady: Bool {
        !isLeaving && zip(goals, reached).allSatisfy { $0 <= $1 }
    }

    /// How far each partition has been read.
    public var positions: [Seq] { reached }

    /// The body of `/readyz`; `log` is the log's state in a word.
    public func body(log: String, epoch: Epoch) -> [UInt8] {
        var body: [UInt8] = []
        body.append(#"{"ready":"#)
        body.append(contentsOf: (isReady ? "true" : "false").utf8)
        body.append(#","leaving":"#)
        body.append(contentsOf: (isLeaving ? "true" : "false").utf8)
        body.append(#","log":"#)
        body.append(quoted: log)
        body.append(#","epoch":"#)
        body.append(quoted: epoch.description)
        body.append(#","partitions":["#)
        for (partition, seq) in reached.enumerated() {
            if partition > 0 { body.append(UInt8(ascii: ",")) }
            body.append(#"{"partition":"#)
            body.append(integer: partition)
            body.append(#","seq":"#)
            body.append(integer: seq)
            body.append(#","goal":"#)
            body.append(integer: goals[partition])
            body.append(UInt8(ascii: "}"))
        }
        body.append("]}")
        return body
    }
}
