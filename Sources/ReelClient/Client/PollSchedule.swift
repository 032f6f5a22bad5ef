internal import ReelCore

/// When the streams of a client that have no subscription are polled. A pure machine: it bounds what one client asks of
/// a node, and serves the streams in the order in which they are due.
struct PollSchedule {
    /// Polls under way at the same time.
    static let underWayMax = 4
    /// Between the beginnings of two polls.
    static let paceMs: Int64 = 20

    private struct Turn {
        var stream: StreamName
        var dueMs: Int64
    }

    private var turns: [Turn] = []
    private var underWay: Set<StreamName> = []
    private var lastMs: Int64?

    /// Polls the stream at this time, or sooner where that was planned. One that is under way is not planned.
    mutating func ask(_ stream: StreamName, atMs dueMs: Int64) {
        guard !underWay.contains(stream) else { return }
        if let index = turns.firstIndex(where: { $0.stream == stream }) {
            turns[index].dueMs = min(turns[index].dueMs, dueMs)
        } else {
            turns.append(Turn(stream: stream, dueMs: dueMs))
        }
    }

    /// The stream is not polled before it is asked for again, and no longer under way.
    mutating func remove(_ stream: StreamName) {
        turns.removeAll { $0.stream == stream }
        underWay.remove(stream)
    }

    /// The next stream to poll now, which is under way from here on; nil if none is due or too many are under way.
    mutating func next(nowMs: Int64) -> StreamName? {
        guard let nextMs, nextMs <= nowMs, let index = first else { return nil }
        let stream = turns.remove(at: index).stream
        underWay.insert(stream)
        lastMs = nowMs
        return stream
    }

    /// When to ask for the next one; nil: not before another poll has ended or is asked for.
    var nextMs: Int64? {
        guard underWay.count < Self.underWayMax, let index = first else { return nil }
        return max(turns[index].dueMs, lastMs.map { $0 + Self.paceMs } ?? turns[index].dueMs)
    }

    /// The one that is due first; of several, the one that was planned first.
    private var first: Int? { turns.indices.min { turns[$0].dueMs < turns[$1].dueMs } }
}
