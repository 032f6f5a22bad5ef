import ReelCore

/// The ops that were nacked and were not sent again. Later ops of their lane wait for them on that connection.
///
/// A nacked op may appear again in a publish of the client, or in the log. In the log the client's own fold may have
/// consumed it, and then the client does not send it again.
struct NackedOps {
    /// The range from the lowest op of a lane that was nacked and has not appeared again to the highest one.
    private struct Row {
        var ops: ClosedRange<Op>
        var untilMs: Int64
    }

    /// The maximum number of lanes that are remembered per connection.
    static let lanesPerConnection = 10_000

    private let holdMs: Int64
    private var rows: [Int: [PublisherKey: Row]] = [:]
    private var connections: [PublisherKey: Set<Int>] = [:]

    /// Creates an empty set. `holdMs` is the maximum time in milliseconds for which a nack holds up later ops.
    init(holdMs: Int64) {
        self.holdMs = holdMs
    }

    var isEmpty: Bool { connections.isEmpty }

    /// Returns the op for which later ops of the lane must wait; nil: there is none.
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

    /// Called when an op is read from the log. If it is the missing op, the next op that was nacked is now the missing
    /// one.
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

    /// Called when a client has sent an op again. If it is the missing op, the later ones follow it.
    mutating func taken(_ op: Op, _ lane: PublisherKey, _ connection: Int) {
        if !isEmpty, rows[connection]?[lane]?.ops.lowerBound == op { clear(lane, connection) }
    }

    /// Removes the nacks that have held up later ops for the maximum time. Called about once a second.
    mutating func forgetExpired(nowMs: Int64) {
        for (connection, lanes) in rows {
            for (lane, row) in lanes where nowMs >= row.untilMs { clear(lane, connection) }
        }
    }

    /// Removes the nacks of a connection that is gone.
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
