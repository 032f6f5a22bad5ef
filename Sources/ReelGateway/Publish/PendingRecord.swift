import ReelCore

/// The events of one site in one stream. What happens to one of them concerns those behind it.
struct PublisherKey: Hashable {
    let stream: StreamName
    let site: Site
    /// Of both, made once: a lane is looked up several times for each of its events.
    private let hash: Int

    init(stream: StreamName, site: Site) {
        self.stream = stream
        self.site = site
        var hasher = Hasher()
        hasher.combine(stream)
        hasher.combine(site)
        hash = hasher.finalize()
    }

    static func == (a: PublisherKey, b: PublisherKey) -> Bool {
        a.hash == b.hash && a.site == b.site && a.stream == b.stream
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

/// An event on its way through the log.
final class PendingRecord {
    let lane: PublisherKey
    let op: Op
    let partition: Int
    /// The record's value.
    let value: [UInt8]
    /// Who published it.
    let connection: Int
    let takenMs: Int64
    /// The last seq that had been read when the record was handed to the log.
    var headWhenHandedOver: Seq = .none
    /// Where it was read back; nil: it has not been.
    var seq: Seq?
    /// The log has said that the record is in.
    var isReported = false
    /// Since when it has not said where.
    var placelessMs: Int64?
    /// Nothing more is expected of it.
    var isOver = false

    init(_ lane: PublisherKey, _ op: Op, _ value: [UInt8], partition: Int, connection: Int, takenMs: Int64) {
        self.lane = lane
        self.op = op
        self.partition = partition
        self.value = value
        self.connection = connection
        self.takenMs = takenMs
    }

    /// What it costs while it is on its way.
    var cost: Int { Self.cost(of: value) }

    static func cost(of value: [UInt8]) -> Int { value.count + GatewaySettings.eventCostBytesMin }
}
