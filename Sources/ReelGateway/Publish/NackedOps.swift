import ReelCore

/// Which ops were nacked and have not come again: later ones of their lane wait for them on that connection.
///
/// A nacked op may come again from the client, or from the log: then the client's own fold may have consumed it, and it
/// will not be sent again.
struct NackedOps {
    /// The lowest op of a lane that was nacked and has not come again, and the highest one.
    private struct Row {
        var ops: ClosedRange<Op>
        var untilMs: Int64
    }

    /// More lanes than these are not remembered of one connection.
    static let lanesPerConnection = 10_000

    private let holdMs: Int64
    private var rows: [Int: [PublisherKey: Row]] = [:]
    private var connections: [PublisherKey: Set<Int>] = [:]

    /// A nack holds up later ops for so long at most.
    init(holdMs: Int64) {
        self.holdMs = holdMs
    }

    var isEmpty: Bool { connections.isEmpty }

    /// The op that later ones of the lane must wait for.
    func first(_ lane: PublisherKey, _ connection: Int, nowMs: Int64) -> Op? {
        guard !isEmpty, let row = rows[connection]?[lane], nowMs < row.untilMs else { return nil }
        return row.ops.lowerBound
    }

    mutating func add(_ op: Op, _ lane: PublisherKey, _ connection: Int, nowMs: Int64) {
        let row = rows[connection]?[lane]
        let highest = max(op, row?.ops.upperBound ?? op)
        if let row, nowMs < row.untilMs, row.ops.lowerBound <= op {
            rows[connection]?[lane]?.ops = row.ops.lowerBound...highest
            return
        }
        guard row != nil || rows[connection]?.count ?? 0 < Self.lanesPerConnection else { return }
        rows[connection, default: [:]][lane] = Row(ops: op...highest, untilMs: nowMs + holdMs)
        connections[lane, default: []].insert(connection)
    }

    /// The log shows an op: where it is the one that is missing, the next one that was nacked is missing now.
    mutating func read(_ op: Op, _ lane: PublisherKey) {
        guard !isEmpty else { return }
        for connection in connections[lane] ?? [] {
            guard let ops = rows[connection]?[lane]?.ops, ops.lowerBound == op else { continue }
            if op < ops.upperBound {
                rows[connection]?[lane]?.ops = op + 1...ops.upperBound
            } else {
                clear(lane, connection)
            }
        }
    }

    /// The client has sent an op again: where it is the one that is missing, those behind it come after it.
    mutating func taken(_ op: Op, _ lane: PublisherKey, _ connection: Int) {
        if !isEmpty, rows[connection]?[lane]?.ops.lowerBound == op { clear(lane, connection) }
    }

    /// What has held up others for long enough is nothing any more. About once a second.
    mutating func forgetExpired(nowMs: Int64) {
        for (connection, lanes) in rows {
            for (lane, row) in lanes where nowMs >= row.untilMs { clear(lane, connection) }
        }
    }

    /// The connection is gone.
    mutating func forget(_ connection: Int) {
        for lane in (rows[connection] ?? [:]).keys { clear(lane, connection) }
    }

    private mutating func clear(_ lane: PublisherKey, _ connection: Int) {
        rows[connection]?[lane] = nil
        if rows[connection]?.isEmpty == true { rows[connection] = nil }
        connections[lane]?.remove(connection)
        if connections[lane]?.isEmpty == true { connections[lane] = nil }
    }
}
