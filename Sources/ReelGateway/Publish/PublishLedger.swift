import ReelCore
import ReelNode

/// The events that clients published through one loop and that are not answered yet.
///
/// An event is acked once it was read back from the log *and* the log has reported it without an error. For one stream
/// and site a connection gets its acks in the order of its publishes. An event that is sent again is appended again:
/// only a fold knows if an earlier copy was consumed, and it consumes each op once.
///
/// After a nack, later ops of that stream and site are nacked `gap` on this connection until the nacked op is sent
/// again.
struct PublishLedger {
    /// The answer to one event.
    struct Resolution: Equatable {
        enum Answer: Equatable {
            case acked(Seq)
            case nacked(ReelError)
        }
        var connection: Int
        var stream: StreamName
        /// The `ref` of the publish, as JSON text.
        var ref: [UInt8]?
        var site: Site
        var op: Op
        var answer: Answer
    }

    /// An event for which a connection waits.
    struct Waiting {
        var ref: [UInt8]?
        var record: PendingRecord
    }

    /// For each connection and lane the events that it waits for, in its order.
    var lanes: [Int: [PublisherKey: Deque<Waiting>]] = [:]
    var nacked: NackedOps
    /// The records on their way, by lane.
    var pendingRecords: [PublisherKey: PendingRecords] = [:]
    /// For each partition the records on their way, in the order of their acceptance.
    var oldest: [Deque<PendingRecord>]
    /// For each partition the records that the log has reported at a seq that was not read yet.
    var promised: [Deque<(seq: Seq, record: PendingRecord)>]
    /// The number of events that wait for the log.
    private(set) var count = 0
    private(set) var byteCount = 0
    let settings: GatewaySettings
    /// The part of `inFlightBytes` that this loop may use.
    let byteLimit: Int

    /// The maximum number of lanes per connection.
    static let lanesPerConnection = 10_000

    /// Creates the ledger of one loop of a gateway.
    init(partitions: Int, _ settings: GatewaySettings) {
        self.settings = settings
        nacked = NackedOps(holdMs: settings.nackHoldMs)
        byteLimit = max(1, settings.inFlightBytes / max(1, settings.node.loops))
        oldest = [Deque<PendingRecord>](repeating: Deque(), count: partitions)
        promised = [Deque<(seq: Seq, record: PendingRecord)>](repeating: Deque(), count: partitions)
    }

    /// True if no record that is read back matters to this ledger.
    var isIdle: Bool { pendingRecords.isEmpty && nacked.isEmpty }

    /// Returns how long the oldest event has waited for a partition, in milliseconds.
    func waitedMs(_ partition: Int, nowMs: Int64) -> Int64 {
        oldest[partition].first.map { nowMs - $0.takenMs } ?? 0
    }

    /// Returns true if an accepted event of the connection is not answered yet.
    func awaitsAnswer(_ connection: Int) -> Bool { lanes[connection] != nil }

    /// Returns the records on their way into a partition that were not read back, in the order of their acceptance.
    func unread(_ partition: Int) -> [PendingRecord] {
        inFlight(partition).filter { $0.seq == nil }
    }

    /// Returns the records on their way into a partition.
    func inFlight(_ partition: Int) -> [PendingRecord] {
        (0..<oldest[partition].count).map { oldest[partition][$0] }.filter { !$0.isOver }
    }

    /// Removes a connection that is gone. Its events may still reach the log.
    mutating func forget(_ connection: Int) {
        nacked.forget(connection)
        lanes[connection] = nil
    }

    // MARK: Records on their way

    /// Adds accepted records, all of one lane.
    mutating func begin(_ taken: some Collection<PendingRecord>) {
        guard let first = taken.first else { return }
        let own = records(of: first.lane)
        for record in taken {
            own.add(record)
            oldest[record.partition].append(record)
            byteCount += record.cost
        }
        count += taken.count
    }

    private mutating func records(of lane: PublisherKey) -> PendingRecords {
        if let own = pendingRecords[lane] { return own }
        let own = PendingRecords()
        pendingRecords[lane] = own
        return own
    }

    /// Removes records that are over, all of one lane.
    mutating func end(_ ended: some Collection<PendingRecord>) {
        guard let lane = ended.first?.lane, let own = pendingRecords[lane] else { return }
        for record in ended where !record.isOver {
            record.isOver = true
            own.end(record)
            count -= 1
            byteCount -= record.cost
            while oldest[record.partition].first?.isOver == true { _ = oldest[record.partition].popFirst() }
        }
        if own.count == 0 { pendingRecords[lane] = nil }
    }

    static func behind(_ op: Op) -> ReelError {
        ReelError(.gap, "op \(op) was nacked and has not come again", retryMs: 0)
    }
}
